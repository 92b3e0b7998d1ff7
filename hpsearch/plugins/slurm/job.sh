# Without an argument, this is the job of all nodes: the head of a Ray cluster, the driver and a Ray
# node on the first, a Ray node on each other. `head` is a job of head and driver alone, and
# `node JOB` a Ray node that joins it: a task of an array.
role=${1:-all}
head_job=${2:-$SLURM_JOB_ID}
address_file=$folder/$head_job.address # where the head listens; there is none if it has left

unset RAY_ADDRESS SLURM_CLUSTERS ${!SQUEUE_@} # the cluster is this one, and squeue hides nothing
unset RAY_gcs_rpc_server_reconnect_timeout_s         # a node notices in a minute that its head has died
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=$folder/token
export RAY_worker_niceness=0                         # SLURM has shared out the cores
export RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S=$save_s # a Ray node that leaves lets its trials save
trains=(--num-cpus="$SLURM_CPUS_ON_NODE" --num-gpus="${SLURM_GPUS_ON_NODE:-0}")
memory=()
ray_log=$folder/ray-$SLURM_JOB_ID-$SLURMD_NODENAME.log
is_over= ray= tmp= short=

find_room() { # for Ray: closed to others, which its own folder is not, and named after this run
    local own="hps-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}-XXXXXX"
    sweep "${TMPDIR:-/tmp}" /tmp
    tmp=$(mktemp -d "${TMPDIR:-/tmp}/$own" || mktemp -d "/tmp/$own") || exit 1
    room=$tmp
    echo "$SLURM_CLUSTER_NAME" >"$tmp/cluster"
    ((${#tmp} <= 38)) && return
    short=$(mktemp -d "/tmp/$own") || exit 1 # the path of a socket has at most 107 bytes
    cp "$tmp/cluster" "$short"
    room=$short/t
    ln -s "$tmp" "$room"
}

sweep() { # away with what runs of this user's that are over have left, as in a power cut
    local left active each job restart
    left=$(find "$@" -maxdepth 1 -user "$(id -u)" -name 'hps-*-*-*' 2>/dev/null)
    [[ $left ]] && active=$(squeue --me --noheader --format=.%A.) || return
    while IFS= read -r each; do
        IFS=- read -r _ job restart _ <<<"${each##*/}"
        [[ $job-$restart =~ ^[0-9]+-[0-9]+$ ]] || continue
        [[ $(cat "$each/cluster" 2>/dev/null) == "$SLURM_CLUSTER_NAME" ]] || continue # scratch is shared
        [[ $job == "$SLURM_JOB_ID" && $restart -lt ${SLURM_RESTART_COUNT:-0} ]] || # an earlier run
            [[ $active != *".$job."* ]] && rm -rf "$each"
    done <<<"$left"
}

share_memory() { # tell Ray what the job has, and not what the node has
    local mb=${SLURM_MEM_PER_NODE:-0} store
    ((mb)) || mb=$((${SLURM_MEM_PER_CPU:-0} * SLURM_CPUS_ON_NODE))
    ((mb)) || mb=$((${SLURM_MEM_PER_GPU:-0} * ${SLURM_GPUS_ON_NODE:-0}))
    store=$((mb / 10 < 2000 ? mb / 10 : 2000)) # hardly used: trials read files
    ((store < 80)) && store=80 # Ray takes no less
    ((mb > 200)) && memory=(--memory=$(((mb - store) << 20)) --object-store-memory=$((store << 20)))
}

clear_up() { # again, as Ray's last processes may still write
    for _ in {1..10}; do
        rm -rf "$tmp" $short 2>/dev/null && [[ ! -e $tmp ]] && return
        sleep 1
    done
}

start_ray() { # what it says is of interest if it does not start
    "${in_container[@]}" ray start --block --temp-dir="$room/r" --disable-usage-stats \
        "${memory[@]}" "$@" >"$ray_log" 2>&1 &
    ray=$!
}

ended() { # wait for a process to its end, whatever signals arrive; returns its exit code
    local code
    until wait "$1"; code=$?; ! kill -0 "$1" 2>/dev/null; do :; done
    return "$code"
}

drive() { # drive the study to its end, or to that of this job
    rm -f "$address_file"
    start_ray --head --port=0 --include-dashboard=false "$@"
    until [[ -s $room/r/ray_current_cluster ]]; do
        kill -0 "$ray" 2>/dev/null || { echo "hpsearch: Ray did not start: see $ray_log" >&2; exit 1; }
        sleep 1
    done
    address=$(<"$room/r/ray_current_cluster")
    echo "$address" >"$address_file"
    [[ $role == all ]] && start_others
    "${in_container[@]}" hpsearch run "$study_file" --resume --address "$address" &
    driver=$!
    trap 'is_over=1; kill -TERM "$driver"' USR1 # SLURM's warning: everything is saved
    ended "$driver"
    code=$?
    rm -f "$address_file"
    [[ $role == all ]] && scancel --signal=TERM "$SLURM_JOB_ID" # the steps on other nodes
    kill "$ray"
    let_go
    clear_up
    if [[ $is_over && $code -ne 0 ]]; then
        echo "hpsearch: the job is requeued, and the study continues when it starts again" >&2
        scontrol requeue "$SLURM_JOB_ID"
    elif [[ $role == head ]]; then
        scancel --user="$(id -un)" --name="$name-$SLURM_JOB_ID"
    fi
    exit "$code"
}

let_go() { # wait for Ray and the steps, but not long: nobody tells of the end of a step whose node died
    for _ in {1..20}; do
        [[ $(jobs -pr) ]] || return
        sleep 1
    done
    kill -KILL $(jobs -pr)
}

start_others() { # a step each: one that dies takes no other with it
    for host in $(scontrol show hostnames "$SLURM_JOB_NODELIST"); do
        [[ $host == "$SLURMD_NODENAME" ]] && continue
        srun --export=ALL --nodes=1 --ntasks=1 --nodelist="$host" --cpu-bind=none bash "$folder/job.sh" node &
    done
}

join() { # be a Ray node of whichever cluster the head's job has
    trap 'is_over=1; [[ $ray ]] && kill -TERM "$ray"' USR1
    silent=0
    while [[ ! $is_over ]] && is_wanted; do
        address=$(cat "$address_file" 2>/dev/null)
        if [[ $address ]] && answers; then
            silent=0
            start_ray --address="$address" "${trains[@]}"
            ended "$ray"
        elif [[ $address && $head_job == "$SLURM_JOB_ID" ]] && ((++silent > 12)); then
            # The first node died, and its script with it. SLURM keeps the job for the others.
            break
        fi
        sleep 5
    done
    clear_up # a requeue ends this script
    is_wanted && scontrol requeue "$SLURM_JOB_ID"
}

answers() {
    timeout 5 bash -c "exec 3<>/dev/tcp/${address%:*}/${address##*:}" 2>/dev/null
}

is_wanted() { # the head's job waits or runs; also if SLURM does not answer
    [[ $head_job == "$SLURM_JOB_ID" ]] && return
    local state
    state=$(squeue --noheader --jobs="$head_job" --format=%T 2>&1)
    [[ $state && $state != *"Invalid job id"* ]]
}

find_room
trap 'kill $ray 2>/dev/null; wait; clear_up' EXIT
share_memory
case $role in
    all) drive "${trains[@]}" ;;
    head) drive --num-cpus=0 --num-gpus=0 ;;
    node) join ;;
esac
