/** Runs of one work that are asked for faster than it is done: one runs, one waits for all later askers. */

interface JoinedRunsOptions {
  readonly run: () => Promise<unknown>;
  /** Wait between two beginnings, so that a flood of requests leaves time for other work. */
  readonly intervalMs: number;
  readonly timer: (delayMs: number, run: () => void) => unknown;
}

/** Asks for a run that begins after this call. */
export function joinRuns({ run, intervalMs, timer }: JoinedRunsOptions): () => void {
  let state: 'idle' | 'running' | 'again' = 'idle';
  const begin = () => {
    state = 'running';
    let waiting = 2;
    const ended = () => {
      waiting -= 1;
      if (waiting > 0) return;
      if (state === 'again') begin();
      else state = 'idle';
    };
    timer(intervalMs, ended);
    void run().finally(ended);
  };
  return () => {
    if (state === 'idle') begin();
    else state = 'again';
  };
}
