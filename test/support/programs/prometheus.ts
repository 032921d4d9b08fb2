/** Prometheus where it is installed, scraping one gateway every second; queries of its HTTP API. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { pickPort } from '../../../kit/free-port.ts';
import { temporaryFolder } from '../files/file-storage.ts';

export interface Prometheus {
  /** Values of an instant query; throws what Prometheus says of a faulty one. */
  query(expression: string): Promise<number[]>;
}

interface QueryAnswer {
  readonly status: string;
  readonly error?: string;
  readonly data?: { readonly result: readonly { readonly value: readonly [number, string] }[] };
}

/** `target`: address of the internal listener; `rules`: text of a rule file. Ends with the test. */
export async function startPrometheus(t: Test, target: string, rules: string): Promise<Prometheus> {
  const folder = temporaryFolder(t);
  const port = await pickPort();
  writeFileSync(join(folder, 'rules.yml'), rules);
  writeFileSync(
    join(folder, 'prometheus.yml'),
    `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [rules.yml]
scrape_configs:
  - job_name: gatehouse
    static_configs: [{ targets: ["${new URL(target).host}"] }]
`,
  );
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  t.teardown(() => child.kill('SIGKILL'));
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', () => said.includes('ready to receive web requests') && resolve());
    child.once('exit', () => reject(new Error(said.slice(-2_000))));
  });
  return {
    async query(expression) {
      const address = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expression)}`;
      const answer = (await (await fetch(address)).json()) as QueryAnswer;
      if (answer.status !== 'success') throw new Error(`${expression}: ${answer.error}`);
      return (answer.data?.result ?? []).map(({ value }) => Number(value[1]));
    },
  };
}
