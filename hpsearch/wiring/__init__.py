"""Where concrete parts are chosen and joined, from a study file, a database and a cluster.

- `driving`: drives a study on Ray; builds its brain
- `creation`: writes a new study into the database, and reads a study's file from there
- `interrupting`: signals that stop a driver
- `ownership`: leases, for as long as somebody drives or changes a study
- `requesting`: what is asked of a study that runs elsewhere
- `warm_start`: what earlier studies tell a new one
- `workers`: what the workers of a study need to know
- `environment`: what a study runs on, for the record
"""
