/** Services that all requests of a pipeline share. */
import type { Limiter } from '../../../actors/limits/limiter.ts';
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import type { SharedBounds } from '../../../domain/limits/shared-bounds.ts';
import type { SettingsReader } from '../../../domain/settings/settings.ts';
import type { Site } from '../../../domain/site.ts';
import type { LoopWatch } from '../../observability/loop-watch.ts';
import type { OpenBodies } from '../body/open-bodies.ts';
import type { InFlight } from '../checks/in-flight.ts';
import type { IncomingHead } from '../exchange/request.ts';
import type { Reply, SessionLookup } from './route.ts';

export interface Services {
  readonly actors: ActorSystem;
  readonly settings: SettingsReader;
  readonly sessionLookup: SessionLookup;
  readonly site: Site;
  readonly limiter: Limiter;
  readonly bounds: SharedBounds;
  readonly inFlight: InFlight;
  /** Undefined: nothing is watched. */
  readonly loopWatch?: Pick<LoopWatch, 'note' | 'label'> | undefined;
  /** The answer to an unknown path; undefined for the usual JSON. */
  readonly notFound?: ((head: IncomingHead) => Reply | undefined) | undefined;
  /** Checks the bodies that are still arriving; by default one for the process. */
  readonly openBodies?: OpenBodies;
}
