/**
 * Loads uWebSockets.js. Two builds are installed, for different lines of Node and versions of glibc; the newest one that
 * this machine can load is used (docs/deployment.md#node-and-uwebsocketsjs).
 */

import type * as Uws from 'uWebSockets.js';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** Packages with a build, newest first. */
export const PACKAGES = ['uWebSockets.js-next', 'uWebSockets.js'] as const;

interface HttpLibrary {
  readonly uws: typeof Uws;
  /** Version of the package that was loaded, such as 20.51.4. */
  readonly version: string;
}

/** No build of uWebSockets.js runs on this machine. The message holds the reason of each. */
export class HttpLibraryUnusable extends Error {}

let loaded: HttpLibrary | undefined;

/** The library, loaded at the first call. Throws `HttpLibraryUnusable`. */
export function httpLibrary(): HttpLibrary {
  loaded ??= loadNewest(PACKAGES, createRequire(import.meta.url));
  return loaded;
}

/** `find` loads and resolves packages by name. Throws `HttpLibraryUnusable`. */
export function loadNewest(
  names: readonly string[],
  find: Pick<NodeJS.Require, 'resolve'> & ((name: string) => unknown),
): HttpLibrary {
  const reasons: string[] = [];
  for (const name of names) {
    try {
      const { version, optionalDependencies } = manifestOf(find.resolve(name));
      if (!hasBinary(Object.keys(optionalDependencies ?? {}))) throw new Error('has no binary for this Node');
      return { uws: find(name) as typeof Uws, version };
    } catch (error) {
      reasons.push(`${name}: ${lastLine(error)}`);
    }
  }
  const { version, platform, arch } = process;
  throw new HttpLibraryUnusable(
    `no build of uWebSockets.js runs on Node ${version.slice(1)}, ${platform}-${arch} (Node 24 and later need glibc 2.38, as in Debian 13): ${reasons.join('; ')}`,
  );
}

/** The library puts the reason of the loader behind a text of its own. */
function lastLine(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return (
    message
      .split('\n')
      .filter((line) => line.includes('Error:'))
      .at(-1) ??
    message.split('\n')[0] ??
    ''
  );
}

interface Manifest {
  readonly version: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** `package.json` is beside the main file, and no export names it. */
function manifestOf(mainFile: string): Manifest {
  return JSON.parse(readFileSync(join(dirname(mainFile), 'package.json'), 'utf8')) as Manifest;
}

/**
 * Where binaries are packages of their own, such as `@uwsjs/linux-x64-20`: is one for this machine? Without the check the
 * newer library would load the binary of the older one, which has the same name.
 */
function hasBinary(platforms: readonly string[]): boolean {
  const { platform, arch, versions } = process;
  const wanted = `${platform}-${arch}-${versions.node.split('.')[0]}`;
  return platforms.length === 0 || platforms.some((name) => name.split('/').at(-1) === wanted);
}
