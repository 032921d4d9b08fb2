/** File servers at a start: each is probed, and what broken transfers left behind is ended then and once a day. */
import { nodeSchedule, type Schedule } from '../../actors/runtime/runtime-context.ts';
import { GatewayError } from '../../domain/errors.ts';
import { DAY_MS } from '../../domain/time.ts';
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
  return {
    enter: () => probe(storage),
    sweepDaily(uploads) {
      if (storage.sweepServers === undefined) return;
      const sweep = () => {
        cancel = schedule.timer(DAY_MS, sweep);
        if (uploads.isOwner()) void sweepServers(storage, uploads, log);
      };
      sweep();
    },
    leave: () => cancel(),
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

/** A failed sweep only leaves space in use: the failure is in the log already, and the next day tries again. */
async function sweepServers(storage: Servers, { wanted }: SweptUploads, log: Log): Promise<void> {
  try {
    const ended = (await storage.sweepServers?.(await wanted())) ?? 0;
    if (ended > 0) log.write('transfersEnded', { transfers: ended });
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
  }
}
