"""Asking an API about completions: bounded concurrency, retries, and what can't be retried."""

from __future__ import annotations

import asyncio
import email.utils
import math
import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from iclbench import Completion, RunError

from .answers import Answer, read_body
from .costs import BYTES_A_TOKEN, Ledger
from .prompt import messages, response_format

if TYPE_CHECKING:
    from .openai_grader import OpenAIConfig

#: Status codes after which asking again may help, besides all from 500.
RETRIED = {408, 409, 429}
#: Codes of a 429 that no waiting ends.
NO_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
#: The longest wait that a server may ask for, and the longest of our own, in seconds.
LONGEST_ASKED, LONGEST = 300.0, 60.0


class _TryAgainError(Exception):
    """The server failed in a way that may pass."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class _FailedError(Exception):
    """The server will not answer about this completion."""


class Asker:
    """Asks about completions, each until its answer can be used or has failed too often."""

    def __init__(self, config: OpenAIConfig, key: str, ledger: Ledger) -> None:
        self.config, self.ledger = config, ledger
        self._key = key
        self._not_before = 0.0
        self._stopped = False
        self._random = random.Random()

    def ask(self, todo: Mapping[str, Completion], take: Callable[[str, Answer], None]) -> None:
        """Give `take` the answer to each completion as it comes, by its key.

        An error of `take`, and what no retry mends, ends the asking at once: raises RunError or
        UsageError.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(self._ask_all(todo, take))
            return
        # Inside another event loop, as notebooks have one.
        with ThreadPoolExecutor(1) as pool:
            try:
                pool.submit(asyncio.run, self._ask_all(todo, take)).result()
            except BaseException:
                self._stopped = True
                raise

    async def _ask_all(
        self, todo: Mapping[str, Completion], take: Callable[[str, Answer], None]
    ) -> None:
        from openai import AsyncOpenAI

        config, waiting = self.config, iter(todo.items())

        async def work() -> None:
            for key, completion in waiting:
                if self._stopped:
                    return
                take(key, await self._ask(client, completion))

        # Retries are our own: the client knows nothing of answers that can't be used.
        async with AsyncOpenAI(
            api_key=self._key, base_url=config.base_url, timeout=config.timeout, max_retries=0
        ) as client:
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(config.concurrency, len(todo))):
                        group.create_task(work())
            except BaseExceptionGroup as errors:
                raise errors.exceptions[0] from None

    async def _ask(self, client: Any, completion: Completion) -> Answer:
        """One completion's answer, or a failed one."""
        config, said = self.config, messages(completion)
        spent = {"requests": 0, "prompt_tokens": 0, "answer_tokens": 0}
        failures = 0
        while True:
            while (pause := self._not_before - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            try:
                answer = await self._request(client, said)
            except _FailedError as error:
                return Answer(**spent, failure=str(error), may_pass=True)
            except _TryAgainError as error:
                failures += 1
                if failures >= config.attempts:
                    return Answer(**spent, failure=str(error), may_pass=True)
                wait = min(LONGEST, config.backoff * 2.0 ** (failures - 1))
                wait *= self._random.uniform(0.5, 1.0)
                if error.wait is not None:
                    # A server's limit holds for all requests.
                    wait = error.wait
                    self._not_before = max(self._not_before, time.monotonic() + wait)
                await asyncio.sleep(wait)
                continue
            spent = {name: value + getattr(answer, name) for name, value in spent.items()}
            answer = answer.model_copy(update=spent)
            try:
                answer.grades()
            except ValueError as error:
                if answer.requests >= config.answers:
                    return answer.model_copy(update={"failure": str(error)})
                continue
            return answer

    async def _request(self, client: Any, said: list[dict[str, str]]) -> Answer:
        """One answer; raises _TryAgainError for what may pass, _FailedError for what will not, and
        RunError for what no other completion could mend either.
        """
        import openai

        config = self.config
        size = sum(len(part["content"].encode()) for part in said) + len(str(response_format()))
        reserved = await self.ledger.reserve(size, config.max_tokens)
        tokens = (0.0, 0.0)
        try:
            async with asyncio.timeout(config.timeout):
                response = await client.chat.completions.with_raw_response.create(
                    model=config.model,
                    messages=said,
                    response_format=response_format(),
                    max_completion_tokens=config.max_tokens,
                    **config.sampling(),
                )
            answer = read_body(response.content.replace(self._key.encode(), b"(key)"))
            if not answer.prompt_tokens:
                used = {"prompt_tokens": math.ceil(size / BYTES_A_TOKEN),
                        "answer_tokens": config.max_tokens}  # fmt: skip
                answer = answer.model_copy(update=used)
            tokens = (answer.prompt_tokens, answer.answer_tokens)
            return answer
        except (TimeoutError, openai.APITimeoutError):
            # It may have been answered, and billed, all the same.
            tokens = (size / BYTES_A_TOKEN, config.max_tokens)
            raise _TryAgainError(f"no answer in {config.timeout:g} s") from None
        except openai.APIStatusError as error:
            raise self._meaning(error) from None
        except openai.APIConnectionError:
            raise _TryAgainError(f"no connection to {config.base_url}") from None
        finally:
            self.ledger.settle(reserved, *tokens)

    def _meaning(self, error: Any) -> Exception:
        """What a status code asks for: to stop, to try again, to count a completion as failed."""
        status, code = error.status_code, str(error.code or "")
        said = self._clean(error.message.removeprefix(f"Error code: {status} - "))
        if status == 401:
            return RunError(f"{self.config.base_url} refuses the key in OPENAI_API_KEY (HTTP 401)")
        if status in {403, 404}:
            return RunError(f"grader openai, {self.config.model}: HTTP {status}: {said}")
        if status == 429 and code in NO_QUOTA:
            return RunError(f"grader openai: no quota is left (HTTP 429): {said}")
        if status in RETRIED or status >= 500:
            wait = retry_after(error.response.headers)
            if wait is not None and wait > LONGEST_ASKED:
                return RunError(
                    f"grader openai: the server asks to wait {wait:.0f} s (HTTP {status}); answers "
                    "so far are kept: run it again then"
                )
            return _TryAgainError(f"HTTP {status}", wait)
        return _FailedError(f"HTTP {status}: {said}")

    def _clean(self, text: str) -> str:
        """A server's words on one line, never with the key in them."""
        return " ".join(str(text).replace(self._key, "(key)").split())[:200]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait that a response asks for, as a number or a date; None where it doesn't."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            seconds = float(text) * unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        when = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, when.timestamp() - time.time())
