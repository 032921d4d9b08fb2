/** Is there an strace that may trace? Tests that need one are skipped where there is none, and say so. */
import { spawnSync } from 'node:child_process';

/** Why not; false where it works. */
export function straceMissing(): string | false {
  const { error, status, stderr } = spawnSync('strace', ['-f', '-o', '/dev/null', 'true'], {
    encoding: 'utf8',
  });
  if (error !== undefined) return `strace is not installed: ${error.message}`;
  return status === 0 ? false : `strace may not trace here: ${stderr.trim()}`;
}
