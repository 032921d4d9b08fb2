/** pgbouncer, where it is installed, in front of an embedded PostgreSQL. */
import { spawn } from 'node:child_process';
import { chownSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import { owner } from '../../../kit/cluster/postgres.ts';
import { pickPort, untilListening } from '../../../kit/free-port.ts';
import { temporaryFolder } from '../files/file-storage.ts';

/** Value of `pool_mode`. */
type PoolMode = 'session' | 'transaction' | 'statement';

/** The address of the database `url`, a `socket:` one, through a pool of so many sessions. It ends with the test. */
export async function startPgbouncer(
  t: Test,
  url: string,
  poolMode: PoolMode,
  sessions: number,
): Promise<string> {
  const folder = temporaryFolder(t);
  const { pathname, searchParams } = new URL(url);
  const [user, database] = ['user', 'db'].map((name) => searchParams.get(name));
  const port = await pickPort();
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(
    file,
    `[databases]
* = host=${pathname} user=${user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${poolMode}
default_pool_size = ${sessions}
`,
  );
  // It does not run as root.
  if (owner.uid !== undefined && owner.gid !== undefined)
    for (const path of [dirname(file), file]) chownSync(path, owner.uid, owner.gid);
  const child = spawn('pgbouncer', ['--quiet', file], { ...owner, stdio: 'ignore' });
  const ended = new Promise((resolve) => child.once('close', resolve));
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  await untilListening(child, port);
  return `postgres://${user}@127.0.0.1:${port}/${database}`;
}
