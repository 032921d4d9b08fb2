/** The connector for agents without a browser, as a package that npx installs from the gateway itself. */
import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AnyRoute, defineRoute, Reply } from '../http/table/route.ts';
import { type CachedFile, FileCache } from './file-cache.ts';

const NAME = /^connector-([0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z.]+)?)\.tgz$/;

/**
 * `folder`: where a build packs it. Its address names the version, and the one without a version leads there.
 * `/connect/connector.json` says what pages show: null in a build that packed nothing.
 */
export function connectorRoutes(folder: string): readonly AnyRoute[] {
  const packed = findPackage(folder);
  const facts: CachedFile = {
    path: '/connect/connector.json',
    bytes: Buffer.from(JSON.stringify({ result: packed?.facts ?? null })),
    immutable: false,
  };
  if (packed === undefined) return new FileCache([facts]).routes;
  const { path } = packed.facts;
  const { routes } = new FileCache([facts, { path, bytes: packed.bytes, immutable: true }]);
  return [...routes, newest(path)];
}

interface Facts {
  readonly version: string;
  readonly path: string;
  /** Digest in hex, as `sha256sum` prints it. */
  readonly sha256: string;
}

function findPackage(folder: string): { readonly facts: Facts; readonly bytes: Buffer } | undefined {
  const [found] = listFolder(folder).flatMap((name) => {
    const version = NAME.exec(name)?.[1];
    return version === undefined ? [] : [{ name, version }];
  });
  if (found === undefined) return undefined;
  const { name, version } = found;
  const bytes = readFileSync(join(folder, name));
  return { bytes, facts: { version, path: `/connect/${name}`, sha256: hash('sha256', bytes, 'hex') } };
}

function listFolder(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}

/** Temporary, and asked for again each time. */
function newest(path: string): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/connect/connector.tgz',
    summary: 'The connector of this version',
    group: 'files of the pages',
    auth: 'none',
    limits: ['NoRateLimit'],
    isFile: true,
    errors: [],
    handle: () =>
      new Reply(302, null, undefined, [
        ['Location', path],
        ['Cache-Control', 'no-cache'],
      ]),
  });
}
