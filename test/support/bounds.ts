/** Bounds of a listener or a module client in a test, with the settings' defaults. */
import type { BoundName } from '../../src/domain/bounds.ts';
import { LiveSettings } from '../../src/domain/settings.ts';
import { SharedBounds } from '../../src/domain/shared-bounds.ts';

/** `maxima` replace those of the table. */
export function freshBounds(maxima: Partial<Record<BoundName, number>> = {}): SharedBounds {
  return new SharedBounds(new LiveSettings(), maxima);
}
