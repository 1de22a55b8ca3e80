"""A web application with its worker in the same process. A real one: `uvicorn fastapi_app:app`.

Run as a program it makes a few requests to itself and ends.

    python examples/fastapi_app.py [URL of a database]
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from windrow import Job, handler
from windrow.errors import WaitTimeout
from windrow.integrations.fastapi import CurrentQueue, add_error_handlers, windrow_lifespan


@dataclass
class Text:
    text: str


@handler("reverse")
async def reverse(job: Job, payload: Text) -> str:
    return payload.text[::-1]


def make_app(url: str) -> FastAPI:
    app = FastAPI(lifespan=windrow_lifespan(url, handlers=[reverse], worker={"concurrency": 4}))
    add_error_handlers(app)  # JobNotFound is answered with 404

    @app.post("/texts", status_code=202)
    async def take(text: str, queue: CurrentQueue) -> dict[str, str]:
        job = await reverse.enqueue(queue, Text(text))
        return {"job": job.id}

    @app.get("/texts/{job_id}")
    async def show(job_id: str, queue: CurrentQueue) -> dict[str, Any]:
        try:
            job = await queue.wait(job_id, timeout=10)
        except WaitTimeout:
            return {"state": "not yet"}
        return {"state": job.state, "result": job.result}

    return app


def main(url: str) -> None:
    with TestClient(make_app(url)) as client:
        for text in ("hay", "windrow"):
            taken = client.post("/texts", params={"text": text})
            shown = client.get(f"/texts/{taken.json()['job']}")
            print(taken.status_code, shown.json())
        missing = client.get("/texts/00000000-0000-7000-8000-000000000000")
        print(missing.status_code, missing.json()["detail"])


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/jobs.db")
else:
    app = make_app(os.environ.get("WINDROW_DATABASE_URL", "sqlite:///windrow.db"))
