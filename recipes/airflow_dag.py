"""An Airflow 3 DAG of the same night as nightly.sh: count, verify, rank, gate, and export only what the gate passes.

Put it into the folder of DAGs. Adapt ``FOLDER``, which has ``logs/DAY/*.parquet`` and keeps counts and policies, and
``log``, the names of the log's columns. The workers need ``prudent``, bash and that folder.

- gate, exit code 1: the task is *skipped*, and with it the export. Production keeps its lists.
- verify, exit code 1: the task *fails*, which alerts, and nothing is launched until somebody looks.
- Any other exit code fails the task, except 99, which skips it. Every task can be cleared and run again.
"""

from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG
from airflow.timetables.interval import CronDataIntervalTimetable

FOLDER = "/srv/ranking"

with DAG(
    dag_id="prudent_nightly",
    # {{ ds }} is the day on which the interval begins: yesterday. With a cron string it would be today in Airflow 3.
    # The interval is the day of the log, so this starts at midnight; where the log comes later, put a sensor before.
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,  # counting and compacting must not overlap
    params={"log": "--context context --items items --clicks clicks"},
) as dag:

    def step(task_id: str, command: str, **how: object) -> BashOperator:
        """A command in the folder, which ends at its first error."""
        return BashOperator(task_id=task_id, bash_command=f"set -euo pipefail\n{command}", cwd=FOLDER, **how)

    again = {"retries": 2, "retry_delay": timedelta(minutes=30)}

    count = step(
        "count",
        "prudent count 'logs/{{ ds }}/*.parquet' -o counts --day {{ ds }} {{ params.log }}",
        **again,
    )

    compact = step(
        "compact",
        "prudent compact counts --before 120d",
        **again,
    )

    # On all days since the launch; `live` is a link to policies/DAY. Before the first launch there is no promise.
    verify = step(
        "verify",
        """
        if [[ ! -e live ]]; then exit 0; fi
        launched=$(basename "$(readlink live)") since=()
        for folder in logs/*/; do
          if [[ $(basename "$folder") > $launched && ! $(basename "$folder") > {{ ds }} ]]; then
            since+=(--log "$folder*.parquet")
          fi
        done
        if [[ -z "${since[*]}" ]]; then exit 0; fi
        prudent verify live/policy.parquet "${since[@]}" -o verify.prom {{ params.log }}
        """,
    )

    # Trained on the days before, so that the day itself is a holdout. Skipped on the very first day, and where a launch
    # has already followed the day.
    rank = step(
        "rank",
        """
        if [[ $(ls counts) == day={{ ds }} ]]; then exit 99; fi
        if [[ -e live && ! {{ ds }} > $(basename "$(readlink live)") ]]; then exit 99; fi
        mkdir -p policies/{{ ds }}
        prudent rank counts -o policies/{{ ds }}/policy.parquet \\
          --until {{ macros.ds_add(ds, -1) }} --since 90d --half-life 14d
        """,
        **again,
    )

    gate = step(
        "gate",
        "prudent gate policies/{{ ds }}/policy.parquet --log 'logs/{{ ds }}/*.parquet' --min-lift 0 {{ params.log }}",
        skip_on_exit_code=1,
    )

    # `live` changes in one step, after everything else is written. Adapt: --format redis, sql, ...
    export = step(
        "export",
        """
        prudent export policies/{{ ds }}/policy.parquet -o policies/{{ ds }}/lists.jsonl
        ln -sfn policies/{{ ds }} live.new
        mv -fT live.new live
        """,
        **again,
    )

    count >> compact >> rank >> gate
    compact >> verify
    [gate, verify] >> export
