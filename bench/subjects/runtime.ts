/** The actor runtime of a build, this one's or a baseline's, loaded by the paths of its modules. */
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

export type Runtime = Pick<typeof import('../../src/actors/runtime/actor.ts'), 'defineActor'> &
  Pick<typeof import('../../src/actors/runtime/journal/lmdb.ts'), 'openJournal'> &
  BareRuntime;

/** Parts of the runtime that actors over a journal need. */
export type BareRuntime = Pick<typeof import('../../src/actors/runtime/system.ts'), 'createActorSystem'> &
  Pick<typeof import('../../src/actors/runtime/runtime-context.ts'), 'nodeSchedule'> &
  Pick<typeof import('../../src/domain/settings/settings.ts'), 'LiveSettings'>;

const MODULES = [
  'src/actors/runtime/actor.js',
  'src/actors/runtime/journal/lmdb.js',
  'src/actors/runtime/system.js',
  'src/actors/runtime/runtime-context.js',
  'src/domain/settings/settings.js',
];
const OWN_BUILD = new URL('../../', import.meta.url);

/** Says why this checkout has no runtime that can be measured, as one sentence; undefined where it has one. */
export function runtimeFault(checkout: string): string | undefined {
  return MODULES.every((path) => existsSync(new URL(path, buildOf(checkout))))
    ? undefined
    : 'The baseline is not measured: it has no actor runtime in the modules of this build.';
}

/** `checkout` is a folder; this build's runtime without it. */
export async function loadRuntime(checkout?: string): Promise<Runtime> {
  const build = checkout === undefined ? OWN_BUILD : buildOf(checkout);
  const modules = await Promise.all(MODULES.map((path) => import(new URL(path, build).href)));
  return Object.assign({}, ...modules) as Runtime;
}

function buildOf(checkout: string): URL {
  return new URL('build/', pathToFileURL(`${checkout}/`));
}
