/** The actor runtime of a build, this one's or a baseline's, loaded by the paths of its modules. */
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

/** `checkout` is a folder; this build's runtime without it. */
export async function loadRuntime(checkout?: string): Promise<Runtime> {
  const build = checkout === undefined ? OWN_BUILD : new URL('build/', pathToFileURL(`${checkout}/`));
  const modules = await Promise.all(MODULES.map((path) => import(new URL(path, build).href)));
  return Object.assign({}, ...modules) as Runtime;
}
