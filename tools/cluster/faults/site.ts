/** The nodes of a faulty cluster as one address: each request goes to one of them by chance. */
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import type { EventSite } from '../../fleet/events.ts';
import { untilAnswered } from '../../fleet/site.ts';

export class ClusterSite implements EventSite {
  readonly faults: string[] = [];
  readonly #pick: () => NodeProcess;

  constructor(pick: () => NodeProcess) {
    this.#pick = pick;
  }

  get url(): string {
    return this.#pick().url;
  }

  get internal(): string {
    return this.#pick().gateway.internal;
  }

  async through(name: string, work: () => Promise<void>): Promise<void> {
    await untilAnswered(name, work, this.faults);
  }
}
