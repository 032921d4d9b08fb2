/**
 * Ports as the slow work of a sampled request sees them: a span for each call. Tasks and methods are named; what they are
 * given never enters a span.
 */
import type { Ports, WorkerPort } from '../../actors/runtime/ports.ts';
import type { TraceSpan } from './span.ts';

/** Ports with a span for each method that answers later, by the word that its span begins with. */
const NAMES = { files: 'storage', chatFiles: 'chat', codes: 'codes' } as const;

export function portsBelow(ports: Ports, parent: TraceSpan): Ports {
  const traced = Object.entries(NAMES).flatMap(([name, word]) => {
    const port = ports[name as keyof typeof NAMES];
    return port === undefined ? [] : [[name, callsBelow(port, word, parent)]];
  });
  return { ...ports, workers: workersBelow(ports.workers, parent), ...Object.fromEntries(traced) };
}

/** The port itself for a request that is not sampled. */
export function workersBelow(workers: WorkerPort, parent: TraceSpan | undefined): WorkerPort {
  if (parent === undefined) return workers;
  return {
    run(name, input, late) {
      const span = parent.child(`worker ${name}`);
      span.set({ 'gatehouse.worker.task': name });
      return followed(span, workers.run(name, input, late));
    },
  };
}

function callsBelow<Port extends object>(port: Port, word: string, parent: TraceSpan): Port {
  return new Proxy(port, {
    get(target, method) {
      const value: unknown = Reflect.get(target, method, target);
      if (typeof value !== 'function') return value;
      return (...given: unknown[]) => {
        const span = parent.child(`${word} ${String(method)}`);
        const result: unknown = Reflect.apply(value, target, given);
        if (result instanceof Promise) return followed(span, result);
        span.end();
        return result;
      };
    },
  });
}

interface Settled {
  readonly ok: boolean;
  readonly error?: string;
}

/** Ends the span with the result. Ports do not reject. */
function followed<Result extends Settled>(span: TraceSpan, result: Promise<Result>): Promise<Result> {
  return result.then((settled) => {
    span.end(settled.ok ? undefined : settled.error);
    return settled;
  });
}
