/** Actors over a journal with nothing around them: no workers, settings as they come, every fault thrown. */
import { randomBytes } from 'node:crypto';
import type { AnyKind } from '../src/actors/runtime/actor.ts';
import type { Journal } from '../src/actors/runtime/journal-port.ts';
import { createActorSystem, type RunningSystem } from '../src/actors/runtime/system.ts';
import { nodeSchedule } from '../src/actors/runtime/world.ts';
import { LiveSettings } from '../src/domain/settings.ts';

export function startBareSystem(kind: AnyKind, journal: Journal): RunningSystem {
  return createActorSystem({
    kinds: [kind],
    journal,
    ports: { workers: { run: async () => ({ ok: false, error: 'InternalError' }) } },
    settings: new LiveSettings(),
    clock: Date.now,
    randomBytes,
    schedule: nodeSchedule,
    onFatal: (error) => {
      throw error;
    },
    onBug: ({ error }) => {
      throw error;
    },
  });
}
