"""Requests to the API about completions: concurrency, retries and permanent errors."""

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

from .answers import Answer, read_body, shown
from .costs import BYTES_PER_TOKEN, Ledger
from .prompt import messages, response_format
from .redaction import Redaction

if TYPE_CHECKING:
    from .openai_grader import OpenAIConfig

#: Status codes below 500 that are retried; all from 500 are.
RETRIED = {408, 409, 429}
#: Codes of a 429 that waiting does not resolve.
NO_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
#: The longest wait accepted from a server, and the longest backoff, in seconds.
LONGEST_RETRY_AFTER, LONGEST_BACKOFF = 300.0, 60.0
#: How often a request that waits looks whether it is still wanted, in seconds.
SLICE = 0.2


class _TransientError(Exception):
    """A failure of the server that a retry may resolve."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class _StoppedError(Exception):
    """No more requests are made, since one has failed for good."""


class _RejectedError(Exception):
    """The server rejects this request; a retry would not help."""


class Asker:
    """Ask about completions, repeating each until the answer is usable or has failed too often."""

    def __init__(self, config: OpenAIConfig, key: str, ledger: Ledger) -> None:
        self.config, self.ledger = config, ledger
        self._key = key
        self._redact = Redaction(key)
        self._not_before = 0.0
        self._stopped = False
        self._random = random.Random()

    def ask(
        self, completions: Mapping[str, Completion], store: Callable[[str, Answer], None]
    ) -> None:
        """Call `store(key, answer)` for each completion as its answer arrives.

        An error in `store` or one that no retry resolves ends the asking: raises RunError or
        UsageError. Answers that are under way then are paid for, so they are stored first.
        """
        try:
            asyncio.get_running_loop()
            has_loop = True
        except RuntimeError:
            has_loop = False
        if not has_loop:
            asyncio.run(self._ask_all(completions, store))
            return
        # Notebooks already run an event loop, so use another thread.
        with ThreadPoolExecutor(1) as pool:
            try:
                pool.submit(asyncio.run, self._ask_all(completions, store)).result()
            except BaseException:
                self._stopped = True
                raise

    async def _ask_all(
        self, completions: Mapping[str, Completion], store: Callable[[str, Answer], None]
    ) -> None:
        from openai import AsyncOpenAI

        from .client import BoundedClient, silent_loggers

        config, waiting = self.config, iter(completions.items())
        errors: list[Exception] = []

        async def work() -> None:
            try:
                for key, completion in waiting:
                    if self._stopped:
                        return
                    store(key, await self._ask(client, completion))
            except _StoppedError:
                return
            except Exception as error:
                self._stopped = True
                errors.append(error)

        # Retries happen here, since the client cannot tell that an answer is unusable.
        with silent_loggers():
            async with AsyncOpenAI(
                api_key=self._key,
                base_url=config.base_url,
                timeout=config.timeout,
                max_retries=0,
                http_client=BoundedClient(),
            ) as client:
                try:
                    async with asyncio.TaskGroup() as group:
                        for _ in range(min(config.concurrency, len(completions))):
                            group.create_task(work())
                except BaseExceptionGroup as several:
                    raise several.exceptions[0] from None
        if errors:
            raise errors[0]

    async def _ask(self, client: Any, completion: Completion) -> Answer:
        """One completion's answer; a failed one after too many attempts."""
        config, conversation = self.config, messages(completion)
        used = {"requests": 0, "prompt_tokens": 0, "answer_tokens": 0}
        failures = 0
        while True:
            while (pause := self._not_before - time.monotonic()) > 0:
                await self._pause(pause * self._random.uniform(1.0, 1.1))
            try:
                answer = await self._request(client, conversation)
            except _RejectedError as error:
                return Answer(**used, failure=str(error), may_pass=True)
            except _TransientError as error:
                failures += 1
                if failures >= config.attempts:
                    return Answer(**used, failure=str(error), may_pass=True)
                wait = min(LONGEST_BACKOFF, config.backoff * 2.0 ** (failures - 1))
                wait *= self._random.uniform(0.5, 1.0)
                if error.wait is not None:
                    # A rate limit applies to all requests, not to this one alone.
                    wait = max(wait, error.wait)
                    self._not_before = max(self._not_before, time.monotonic() + error.wait)
                await self._pause(wait)
                continue
            used = {name: value + getattr(answer, name) for name, value in used.items()}
            answer = answer.model_copy(update=used)
            try:
                answer.grades()
            except ValueError as error:
                if answer.requests >= config.answers:
                    return answer.model_copy(update={"failure": str(error)})
                continue
            return answer

    async def _pause(self, seconds: float) -> None:
        """Wait; raises _StoppedError if there is nothing more to wait for."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._stopped:
                raise _StoppedError
            await asyncio.sleep(min(left, SLICE))

    async def _request(self, client: Any, conversation: list[dict[str, str]]) -> Answer:
        """One answer.

        Raises _TransientError if a retry may help, _RejectedError if this completion is rejected,
        RunError if every completion would be, and _StoppedError if one was.
        """
        import openai

        from .client import BodyError

        config = self.config
        size = sum(len(part["content"].encode()) for part in conversation) + len(
            str(response_format())
        )
        reserved = await self.ledger.reserve(size, config.max_tokens)
        tokens, whole = (0.0, 0.0), (size / BYTES_PER_TOKEN, float(config.max_tokens))
        try:
            if self._stopped:  # while it waited for its part of the budget
                raise _StoppedError
            async with asyncio.timeout(config.timeout):
                response = await client.chat.completions.with_raw_response.create(
                    model=config.model,
                    messages=conversation,
                    response_format=response_format(),
                    max_completion_tokens=config.max_tokens,
                    **config.sampling(),
                )
            answer = read_body(response.content, self._redact)
            if not answer.prompt_tokens:
                # The server did not count, so book the estimate.
                estimate = {"prompt_tokens": math.ceil(size / BYTES_PER_TOKEN),
                            "answer_tokens": config.max_tokens}  # fmt: skip
                answer = answer.model_copy(update=estimate)
            tokens = (answer.prompt_tokens, answer.answer_tokens)
            return answer
        except (TimeoutError, openai.APITimeoutError):
            # The server may have answered and billed it anyway; so may others below.
            tokens = whole
            raise _TransientError(f"no answer in {config.timeout:g} s") from None
        except asyncio.CancelledError:
            tokens = whole
            raise
        except BodyError as error:
            tokens = whole
            raise _TransientError(str(error)) from None
        except openai.APIStatusError as error:
            raise self._classified(error) from None
        except openai.APIConnectionError as error:
            if any(base.__name__ == "ConnectError" for base in type(error.__cause__).__mro__):
                raise _TransientError(f"no connection to {config.base_url}") from None
            tokens = whole
            raise _TransientError(f"the connection to {config.base_url} broke") from None
        finally:
            self.ledger.settle(reserved, *tokens)

    def _classified(self, error: Any) -> Exception:
        """The error to raise for a status code: stop, retry, or reject one completion."""
        status, code = error.status_code, str(error.code or "")
        message = self._clean(error.message.removeprefix(f"Error code: {status} - "))
        if status == 401:
            return RunError(f"{self.config.base_url} refuses the key in OPENAI_API_KEY (HTTP 401)")
        if status in {403, 404}:
            return RunError(f"grader openai, {self.config.model}: HTTP {status}: {message}")
        if status == 429 and code in NO_QUOTA:
            return RunError(f"grader openai: no quota is left (HTTP 429): {message}")
        if status in RETRIED or status >= 500:
            wait = retry_after(error.response.headers)
            if wait is not None and wait > LONGEST_RETRY_AFTER:
                return RunError(
                    f"grader openai: the server asks to wait {wait:.0f} s (HTTP {status}); answers "
                    "so far are stored: run it again after that"
                )
            return _TransientError(f"HTTP {status}", wait)
        return _RejectedError(f"HTTP {status}: {message}")

    def _clean(self, text: str) -> str:
        """A server's message on one line, without the key."""
        return shown(self._redact(str(text)))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The wait in seconds that a response asks for, as a number or a date; None without one."""
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
        return max(0.0, when.timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
