/** The list of actor kinds. A kind that is not here cannot be asked, told or replayed. */
import { challenges } from './challenges.ts';
import type { AnyKind } from './runtime/actor.ts';
import { settings } from './settings.ts';
import { user } from './user.ts';

export const KINDS: readonly AnyKind[] = [challenges, settings, user];
