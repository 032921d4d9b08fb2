/** The list of actor kinds. A kind that is not here cannot be asked, told or replayed. */
import { app } from './app.ts';
import { challenges } from './challenges.ts';
import type { AnyKind } from './runtime/actor.ts';
import { settings } from './settings.ts';
import { user } from './user.ts';

export const KINDS: readonly AnyKind[] = [app, challenges, settings, user];
