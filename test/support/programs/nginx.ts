/** nginx where it is installed: with its DAV module as a storage server, or with the blocks of a test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { pickPort } from '../../../kit/free-port.ts';
import { temporaryFolder } from '../files/file-storage.ts';

/** A storage server's base address. It ends with the test. */
export async function startNginx(t: Test): Promise<string> {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'root'));
  const port = await pickPort();
  await startNginxWith(
    t,
    port,
    `server {
    listen 127.0.0.1:${port};
    root ${folder}/root;
    client_max_body_size 0;
    location / { dav_methods PUT DELETE; create_full_put_path on; }
  }`,
  );
  return `http://127.0.0.1:${port}`;
}

/** Starts it with blocks of its `http` context; resolves when `port`, on which one of them listens, answers. */
export async function startNginxWith(t: Test, port: number, blocks: string): Promise<void> {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'temp'));
  writeFileSync(join(folder, 'nginx.conf'), configurationOf(folder, blocks));
  const child = spawn('nginx', [
    '-p',
    folder,
    '-e',
    join(folder, 'error.log'),
    '-c',
    join(folder, 'nginx.conf'),
  ]);
  t.teardown(() => child.kill());
  await answering(child, port);
}

function configurationOf(folder: string, blocks: string): string {
  return `
daemon off;
master_process off;
pid ${folder}/pid;
error_log ${folder}/error.log;
events {}
http {
  access_log off;
  client_body_temp_path ${folder}/temp;
  proxy_temp_path ${folder}/temp;
  ${blocks}
}
`;
}

/** Asked again until it answers or has ended: it says nothing when it is ready. */
async function answering(child: ChildProcess, port: number): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`);
    try {
      await fetch(`http://127.0.0.1:${port}/`);
      return;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
