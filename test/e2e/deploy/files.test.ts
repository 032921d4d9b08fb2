/** Files of deploy/: the configurations of Kubernetes have no faults, and the script of the backup timer keeps what it says. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { signUp } from '../../../kit/agent.ts';
import { entryOf, launchFor } from '../../../kit/launch.ts';
import { runSync } from '../../../kit/run-sync.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { runCommand } from '../../support/command.ts';

t.setTimeout(240_000);

const KUBERNETES = 'deploy/kubernetes';
const textOf = (name: string) => readFileSync(join(KUBERNETES, name), 'utf8');

/** The file of the ConfigMap, with the folders of a container below `folder`. */
function configurationIn(text: string, folder: string): string {
  const [, block = ''] = /gatehouse\.jsonc: \|\n((?: {4}.*\n)+)/.exec(text) ?? [];
  const file = block.replaceAll(/^ {4}/gm, '');
  return file
    .replaceAll('/run/secrets/', `${folder}/secrets/`)
    .replaceAll('/var/lib/gatehouse', `${folder}/data`);
}

t.test('kubernetes: the configuration of one node and of a node of three has no faults', async (t) => {
  const folder = t.testdir({ data: {}, secrets: { gatehouse: {}, links: {} } });
  const secret = (name: string, text: string) => writeFileSync(join(folder, 'secrets', name), text);
  secret('gatehouse/url', 'postgres://gatehouse@database/gatehouse');
  secret('gatehouse/secret', '5a'.repeat(32));
  secret('gatehouse/s3-key-id', 'AKEXAMPLE');
  secret('gatehouse/s3-secret', 'secret+key');
  const { certificate, key } = makeCertificate();
  secret('links/tls.crt', certificate);
  secret('links/tls.key', key);
  secret('links/ca.crt', certificate);
  const cluster = textOf('cluster.yaml');
  const [, advertise = ''] = /GATEHOUSE_CLUSTER_ADVERTISE\n +value: (.+)/.exec(cluster) ?? [];
  const node = {
    GATEHOUSE_CLUSTER_NAME: 'gatehouse-0',
    GATEHOUSE_CLUSTER_ADVERTISE: advertise.replace('$(GATEHOUSE_CLUSTER_NAME)', 'gatehouse-0'),
  };
  for (const [name, environment] of [
    ['gatehouse.yaml', {}],
    ['cluster.yaml', node],
  ] as const) {
    const file = join(folder, `${name}.jsonc`);
    writeFileSync(file, configurationIn(textOf(name), folder));
    const ended = await runCommand(['check-config', '--config', file], environment);
    t.match(ended, { code: 0, stdout: /^configuration: no faults\n/ }, `${name}: ${ended.stderr}`);
  }
  t.equal(node.GATEHOUSE_CLUSTER_ADVERTISE, 'gatehouse-0.gatehouse-nodes:7000');
});

t.test('kubernetes: one node and three differ in what a cluster needs alone', async (t) => {
  const one = textOf('gatehouse.yaml').split('\n');
  const three = new Set(textOf('cluster.yaml').split('\n'));
  const lost = one.filter((line) => !three.has(line) && !line.startsWith('#'));
  t.ok(lost.length > 0 && lost.length < 12, lost.join('\n'));
  t.ok(lost.some((line) => line === '  replicas: 1'));
});

t.test('backup script: the newest copies stay, one that fails removes none and keeps its code', async (t) => {
  const folder = t.testdir({ backups: { mine: {} }, bin: {} });
  const backups = join(folder, 'backups');
  for (const day of ['01', '02', '03', '04']) mkdirSync(join(backups, `202601${day}T031500Z`));
  const gateway = await launchFor(t, { configuration: {} });
  await signUp(gateway.url);
  const program = join(folder, 'bin', 'gatehouse');
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${entryOf()}' "$@"\n`);
  chmodSync(program, 0o755);
  const run = (...args: string[]) =>
    runSync('deploy/systemd/gatehouse-backup', [backups, ...args], {
      env: { PATH: process.env['PATH'] ?? '', GATEHOUSE: program },
    });
  const failed = run('3', '--data', join(folder, 'nothing'));
  t.not(failed.status, 0);
  t.equal(readdirSync(backups).filter((name) => /^2026010\dT031500Z$/.test(name)).length, 4);
  const made = run('3', '--data', gateway.dataPath);
  t.equal(made.status, 0, made.stderr);
  const left = readdirSync(backups).sort();
  t.match(left, ['20260103T031500Z', '20260104T031500Z', /^20\d{6}T\d{6}Z$/, 'mine']);
  t.equal(left.length, 4);
  t.ok(existsSync(join(backups, left[2] ?? '', 'receipt.json')));
  for (const keep of ['0', '-1', 'x', '']) t.equal(run(keep).status, 64, keep);
});
