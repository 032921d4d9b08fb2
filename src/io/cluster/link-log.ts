/** Log lines about links between nodes: every change of a link, and what repeats only when it is new. */
import type { Clock } from '../../domain/time.ts';
import { type Log, onceAMinute } from '../observability/log.ts';
import type { LinkObserver } from './peers.ts';

interface LinkLogOptions {
  readonly log: Log;
  readonly clock: Clock;
}

export function createLinkLog({ log, clock }: LinkLogOptions): LinkObserver {
  /** Reason of the last failure by node, as it was logged. */
  const failures = new Map<number, string>();
  const isRefusalDue = onceAMinute(clock);
  const directionOf = (outgoing: boolean) => (outgoing ? 'out' : 'in');
  return {
    onOpened({ node }, outgoing) {
      if (outgoing) failures.delete(node);
      log.write('linkOpened', { node, direction: directionOf(outgoing) });
    },
    onClosed(node, outgoing, reason) {
      // The other end of a stop is the end of a process, which says so itself.
      if (reason !== 'stopped') log.write('linkClosed', { node, direction: directionOf(outgoing), reason });
    },
    onFailed(node, failure) {
      const reason = 'lost' in failure ? failure.lost : failure.refused;
      if (failures.get(node) === reason) return;
      failures.set(node, reason);
      log.write('linkFailed', { node, reason });
    },
    onRefused(clientAddress, reason) {
      if (isRefusalDue(reason)) log.write('linkRefused', { clientAddress, reason });
    },
    onBug: (command, err) => log.write('nodeCallFailed', { command, err }),
  };
}
