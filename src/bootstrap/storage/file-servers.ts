/**
 * File servers at a start: each is probed, and what broken transfers left behind is ended then and once a day. A sweep that
 * did not come to the end, because of its bound or a failure, continues an hour later.
 */
import { nodeSchedule, type Schedule } from '../../actors/runtime/runtime-context.ts';
import { GatewayError } from '../../domain/errors.ts';
import { DAY_MS, HOUR_MS } from '../../domain/time.ts';
import { FileServerUnusable } from '../../io/files/storage/file-server.ts';
import type { FileStorage, WantedFiles } from '../../io/files/storage/port.ts';
import type { Log } from '../../io/observability/log.ts';
import { FolderUnusable, JournalUnusable } from '../data-directory.ts';

type Servers = Pick<FileStorage, 'probe' | 'sweepServers'>;

/** Questions that sweeps ask before they remove anything. */
interface SweptUploads {
  /** One node of a cluster sweeps; asked for each sweep. */
  readonly isOwner: () => boolean;
  /** Files of uploads that are open. */
  readonly wanted: () => Promise<WantedFiles>;
}

export interface FileServers {
  /**
   * Rejects with `FolderUnusable` for a server that answered otherwise than the gateway needs, and with `JournalUnusable`
   * for one that did not answer, which works again once it does.
   */
  enter(): Promise<void>;
  /** Sweeps now and once a day. */
  sweepDaily(uploads: SweptUploads): void;
  /** Ends the daily sweep. */
  leave(): void;
}

export function fileServersOf(
  storage: Servers,
  log: Log,
  schedule: Pick<Schedule, 'timer'> = nodeSchedule,
): FileServers {
  let cancel: () => void = () => undefined;
  let isOver = false;
  return {
    enter: () => probe(storage),
    sweepDaily(uploads) {
      if (storage.sweepServers === undefined) return;
      const sweep = async () => {
        const isWhole = !uploads.isOwner() || (await sweepServers(storage, uploads, log));
        if (!isOver) cancel = schedule.timer(isWhole ? DAY_MS : HOUR_MS, () => void sweep());
      };
      void sweep();
    },
    leave() {
      isOver = true;
      cancel();
    },
  };
}

async function probe(storage: Servers): Promise<void> {
  try {
    await storage.probe?.();
  } catch (error) {
    if (!(error instanceof FileServerUnusable)) throw error;
    throw error.isAnswered
      ? new FolderUnusable(error.message, 'FileServers')
      : new JournalUnusable(`FileServers cannot be used: ${error.message}`);
  }
}

/** True when it came to the end. What remains only takes space: a failure is in the log already. */
async function sweepServers(storage: Servers, { wanted }: SweptUploads, log: Log): Promise<boolean> {
  try {
    const { ended, hasMore } = (await storage.sweepServers?.(await wanted())) ?? { ended: 0, hasMore: false };
    if (ended > 0) log.write('transfersEnded', { transfers: ended });
    return !hasMore;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return false;
  }
}
