/** Kills of one gateway that several tests share: a start costs more than all that most of them ask of it. */
import { rmSync } from 'node:fs';
import type { Test } from 'tap';
import { type LaunchOptions, launch, type RunningGateway } from '../../../kit/launch.ts';

export interface SharedKills {
  /** The process of the moment. */
  readonly gateway: RunningGateway;
  /** For each test of the number, at its begin. */
  join(t: Test): void;
  /** SIGKILL and a start on the same port and data, once every test that has not ended waits for it. */
  killed(): Promise<void>;
}

/** `tests`: how many share it. Their last one to end stops it. */
export async function startKills(tests: number, options: LaunchOptions): Promise<SharedKills> {
  let gateway = await launch(options);
  let running = tests;
  let waiting: ((restarted: Promise<void>) => void)[] = [];
  const restart = async () => {
    await gateway.kill();
    const { dataPath, url } = gateway;
    gateway = await launch({ ...options, dataPath, port: Number(new URL(url).port) });
  };
  const look = () => {
    if (waiting.length === 0 || waiting.length < running) return;
    const restarted = restart();
    for (const go of waiting) go(restarted);
    waiting = [];
  };
  return {
    get gateway() {
      return gateway;
    },
    join: (t) =>
      t.teardown(async () => {
        running -= 1;
        look();
        if (running > 0) return;
        await gateway.stop();
        rmSync(gateway.dataPath, { recursive: true, force: true });
      }),
    killed: () =>
      new Promise<void>((resolve) => {
        waiting.push(resolve);
        look();
      }),
  };
}
