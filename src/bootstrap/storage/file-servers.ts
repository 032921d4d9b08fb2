/** File servers at a start: each is probed, and what broken transfers left behind is ended then and once a day. */
import { nodeSchedule } from '../../actors/runtime/runtime-context.ts';
import { GatewayError } from '../../domain/errors.ts';
import { DAY_MS } from '../../domain/time.ts';
import { FileServerUnusable } from '../../io/files/storage/file-server.ts';
import type { FileStorage } from '../../io/files/storage/port.ts';
import type { Log } from '../../io/observability/log.ts';
import { FolderUnusable, JournalUnusable } from '../data-directory.ts';

type Servers = Pick<FileStorage, 'probe' | 'sweepServers'>;

export interface FileServers {
  /**
   * Rejects with `FolderUnusable` for a server that answered otherwise than the gateway needs, and with `JournalUnusable`
   * for one that did not answer, which works again once it does.
   */
  enter(): Promise<void>;
  /** Ends the daily sweep. */
  leave(): void;
}

export function fileServersOf(storage: Servers, log: Log): FileServers {
  let cancel: () => void = () => undefined;
  const sweep = () => {
    cancel = nodeSchedule.timer(DAY_MS, sweep);
    void sweepServers(storage, log);
  };
  return {
    async enter() {
      await probe(storage);
      if (storage.sweepServers !== undefined) sweep();
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

/** What remains only takes space: the failure is in the log already, and the next day tries again. */
async function sweepServers(storage: Servers, log: Log): Promise<void> {
  try {
    const ended = (await storage.sweepServers?.()) ?? 0;
    if (ended > 0) log.write('transfersEnded', { transfers: ended });
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
  }
}
