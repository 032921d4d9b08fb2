/** Bounds of a listener or a module client in a test, with the settings' defaults. */
import type { BoundName } from '../../../src/domain/limits/bounds.ts';
import { SharedBounds } from '../../../src/domain/limits/shared-bounds.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';

/** `maxima` replace those of the table. */
export function freshBounds(maxima: Partial<Record<BoundName, number>> = {}): SharedBounds {
  return new SharedBounds(new LiveSettings(), maxima);
}
