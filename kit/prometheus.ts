/** Prometheus where it is installed, scraping gateways every second; what its HTTP API says. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pickPort } from './free-port.ts';

export interface Prometheus {
  /** Values of an instant query; throws what Prometheus says of a faulty one. */
  query(expression: string): Promise<number[]>;
  firing(): Promise<ReadonlySet<string>>;
  stop(): Promise<void>;
}

interface ApiAnswer<Data> {
  readonly status: string;
  readonly error?: string;
  readonly data?: Data;
}

interface QueryResult {
  readonly result: readonly { readonly value: readonly [number, string] }[];
}

interface Alerts {
  readonly alerts: readonly { readonly labels: { readonly alertname: string }; readonly state: string }[];
}

/** `targets`: addresses of internal listeners; `rules`: text of a rule file. */
export async function startPrometheus(targets: readonly string[], rules: string): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-prometheus-'));
  const port = await pickPort();
  writeFileSync(join(folder, 'rules.yml'), rules);
  const hosts = JSON.stringify(targets.map((target) => new URL(target).host));
  writeFileSync(
    join(folder, 'prometheus.yml'),
    `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [rules.yml]
scrape_configs:
  - job_name: gatehouse
    static_configs: [{ targets: ${hosts} }]
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
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const stop = async () => {
    child.kill('SIGKILL');
    await exited;
    rmSync(folder, { recursive: true, force: true });
  };
  await new Promise<void>((resolve, reject) => {
    child.stderr.on('data', () => said.includes('ready to receive web requests') && resolve());
    child.once('exit', () => reject(new Error(said.slice(-2_000))));
    child.once('error', reject);
  });
  const ask = async <Data>(path: string): Promise<Data> => {
    const answer = (await (await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)).json()) as ApiAnswer<Data>;
    if (answer.status !== 'success' || answer.data === undefined)
      throw new Error(`${path}: ${answer.error ?? answer.status}`);
    return answer.data;
  };
  return {
    async query(expression) {
      const { result } = await ask<QueryResult>(`query?query=${encodeURIComponent(expression)}`);
      return result.map(({ value }) => Number(value[1]));
    },
    async firing() {
      const { alerts } = await ask<Alerts>('alerts');
      return new Set(alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname));
    },
    stop,
  };
}
