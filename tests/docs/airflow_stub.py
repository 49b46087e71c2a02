"""What the recipe for Airflow uses of Airflow, which is too heavy to install for one file."""

from datetime import date, timedelta
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import jinja2


class Task:
    """What the DAG uses of a BashOperator."""

    made: ClassVar[list["Task"]] = []

    def __init__(
        self,
        *,
        task_id: str,
        bash_command: str,
        cwd: str,
        skip_on_exit_code: int = 99,
        retries: int = 0,
        retry_delay: timedelta | None = None,
    ) -> None:
        self.name, self.command, self.cwd, self.skip = task_id, bash_command, cwd, skip_on_exit_code
        self.retries, self.retry_delay = retries, retry_delay
        self.after: list[Task] = []
        Task.made.append(self)

    def rendered(self, dag: "Dag", ds: str) -> str:
        """The command of one day, with templates filled in as Airflow does."""
        macros = SimpleNamespace(ds_add=lambda ds, by: str(date.fromisoformat(ds) + timedelta(days=by)))
        template = jinja2.Template(self.command, undefined=jinja2.StrictUndefined)
        text: str = template.render(ds=ds, macros=macros, params=dag.settings["params"])
        return text

    def __rshift__(self, other: "Task") -> "Task":
        other.after.append(self)
        return other

    def __rrshift__(self, others: list["Task"]) -> Self:
        self.after += others
        return self


class Dag:
    """What the DAG uses of one."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""


class Timetable:
    """Of one day each, in UTC."""

    def __init__(self, cron: str, timezone: str) -> None:
        assert (cron.split()[2:], timezone) == (["*"] * 3, "UTC")


MODULES: dict[str, dict[str, type]] = {
    "airflow.providers.standard.operators.bash": {"BashOperator": Task},
    "airflow.sdk": {"DAG": Dag},
    "airflow.timetables.interval": {"CronDataIntervalTimetable": Timetable},
}
