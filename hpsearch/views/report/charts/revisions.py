"""The ladder of changes of code: what each was better by, on the base as it was by then."""

from collections import defaultdict

from hpsearch.domain.facts import CodeVerdict
from hpsearch.domain.numbers import count, number
from hpsearch.views.report.charts import style
from hpsearch.views.report.charts.style import Chart, axis, figure, plotly, shown
from hpsearch.views.report.data import ReportData

_MARKS: dict[str, tuple[str, str, str]] = {
    CodeVerdict.KEEP: ("kept", style.GOOD, "diamond"),
    CodeVerdict.DISCARD: ("discarded", style.BAD, "x"),
    CodeVerdict.OPEN: ("not decided yet", style.CALM, "circle-open"),
}


def ladder(data: ReportData) -> Chart | None:
    """A mark for each change that has pairs, with a line down to its lower bound, on the steps of
    the base; None where fewer than two are decided."""
    drawn = [each for each in data.revisions if each["better_by"] is not None]
    if sum(each["decided"] is not None for each in drawn) < 2:
        return None
    base, steps, marks = 0.0, {drawn[0]["number"] - 0.5: 0.0}, defaultdict(list)
    for each in drawn:
        top = base + each["better_by"]
        marks[each["verdict"]].append((each, top))
        if each["verdict"] == CodeVerdict.KEEP:
            steps[each["number"]] = base = top
    steps[drawn[-1]["number"] + 0.5] = base
    made = figure(300, showlegend=True)
    line = {"shape": "hv", "color": style.GOOD, "width": 2}
    stairs = plotly().Scatter(x=list(steps), y=list(steps.values()), mode="lines", line=line)
    made.add_trace(stairs.update(name="base"))
    tops = [0.0, *(top for own in marks.values() for _, top in own)]
    floor = max(min(tops), -max(tops) or min(tops))  # far below, a mark lies on the floor
    for verdict, own in marks.items():
        name, colour, symbol = _MARKS[verdict]
        bounds = [(each["better_by"], each["at_least"]) for each, _ in own]
        down = [None if least is None else mean - least for mean, least in bounds]
        trace = plotly().Scatter(
            x=[each["number"] for each, _ in own],
            y=[max(top, floor) for _, top in own],
            error_y={"array": [0] * len(own), "arrayminus": down, "thickness": 1.5},
            mode="markers",
            marker={"color": colour, "size": 11, "symbol": symbol},
            text=[f"revision {each['number']}: {shown(each['reason'], 90)}" for each, _ in own],
            hovertemplate="%{text}<extra></extra>",
            name=name,
        )
        made.add_trace(trace)
    better = f"{data.goal.metric} {'higher' if data.goal.maximize else 'lower'}"
    room = 0.15 * (max(tops) - floor) or 1.0
    made.update_xaxes(axis("revision", **style.ticks([each["number"] for each in drawn])))
    made.update_yaxes(axis(f"{shown(better)} by", range=[floor - room, max(tops) + room]))
    parts = ", ".join(f"{len(own)} {_MARKS[verdict][0]}" for verdict, own in marks.items())
    gained = f"What was kept makes {better} by {number(base)} in all."
    alternative = f"The ladder of {count(len(drawn), 'change')} of code: {parts}. {gained}"
    remark = "Each stands on the base that it changed; its line ends at its lower bound."
    below, out = sum(top < floor for top in tops), len(data.revisions) - len(drawn)
    remark += f" Farther below than drawn: {below}." if below else ""
    remark += f" Without a complete pair: {out}." if out else ""
    return Chart(made, "Changes of code", alternative, remark)
