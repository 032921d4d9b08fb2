/** A call over another way than a connection, such as the pipes of a process: one deadline, and it ends exactly once. */
import { performance } from 'node:perf_hooks';
import type { CallChannel, ModuleError, ModuleRequest, ModuleResult } from './types.ts';

/** `ended` as of an attempt over a connection. */
export function runChannelCall(
  channel: CallChannel,
  { body = '', onBegin, signal }: ModuleRequest,
  timeoutMs: number,
  ended: (result: ModuleResult, isSent: boolean) => void,
): void {
  const startMs = performance.now();
  let isOver = false;
  const elapsedMs = () => performance.now() - startMs;
  const finish = (result: ModuleResult) => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
    ended(result, true);
  };
  const forget = channel.begin(body, (end) => {
    if ('error' in end) finish({ ok: false, ...end, elapsedMs: elapsedMs() });
    else
      finish({ ok: true, answer: { status: 200, contentType: JSON_TYPE, ...end }, elapsedMs: elapsedMs() });
  });
  const stop = (error: ModuleError, reason: string) => {
    if (isOver) return;
    forget?.();
    finish({ ok: false, error, reason, elapsedMs: elapsedMs() });
  };
  const abort = () => stop('Aborted', 'aborted by the caller');
  const timer = setTimeout(() => stop('ModuleTimedOut', 'deadline'), timeoutMs);
  signal?.addEventListener('abort', abort, { once: true });
  if (forget === undefined) stop('ModuleUnavailable', 'the way takes no request now');
  else onBegin?.(abort);
}

const JSON_TYPE = 'application/json';
