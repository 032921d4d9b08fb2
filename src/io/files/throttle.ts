/**
 * Bandwidth limiter of file streams (spec 8.2): maps a stream to its quota and runs the intervals that grant bandwidth.
 * Uploads are charged for bytes that arrived and pause until these are paid; downloads ask before they send.
 */
import { type Debtor, FairBucket, TURN_MS } from '../../actors/limits/bandwidth.ts';
import type { SharedBandwidth } from '../../actors/limits/shared-bandwidth.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { type Clock, SECOND_MS } from '../../domain/time.ts';
import { personOf, quotaKey, type StreamOwner } from './stream-owner.ts';

/** Each has a quota of its own. The bandwidth limiter of spec 8.2 is that of v2; quotas of v1 are an extension. */
export type Direction = 'download' | 'v1Download' | 'upload' | 'part';

export const QUOTA_SETTING = {
  download: 'FileDownloadBytesPerSecond',
  v1Download: 'FileV1DownloadBytesPerSecond',
  upload: 'FileUploadBytesPerSecond',
  part: 'FileV1UploadBytesPerSecond',
} as const satisfies Record<Direction, string>;

/** Bytes of one request for bandwidth, in intervals: with two, no interval grants less than it received. */
const ASK_INTERVALS = 2;
/** Smaller pieces cost more than they smooth; of a slow quota the first byte takes less than a second. */
const ASK_BYTES_MIN = { fast: 16 * 1024, slow: 1_024 } as const;
const ASK_BYTES_MAX = 512 * 1024;
/** Quotas kept; above that, unused ones are removed. */
const BUCKETS_MAX = 10_000;

export interface ThrottledStream {
  /** Charges bytes that arrived. False: pause until `onClear`; further bytes may be charged meanwhile. */
  charge(sizeBytes: number): boolean;
  /** Bytes are not paid yet. */
  readonly owing: boolean;
  /** Called once for each `charge` that returned false. */
  onClear: (() => void) | undefined;
  /** Resolves when all is paid, or when the stream has left. The last answer waits for it. */
  paid(): Promise<void>;
  /**
   * Asks to send up to `wantedBytes`. `go` is called once, within the call or later, with the bytes granted, at least 1.
   * One request at a time, and not together with `charge`.
   */
  ask(wantedBytes: number, go: (bytes: number) => void): void;
  /** The stream has ended: its debt is cancelled, no callback follows. May be called again. */
  leave(): void;
}

/** Runs once after the delay; the returned function cancels it. */
export type ThrottleTimer = (delayMs: number, run: () => void) => () => void;

interface ThrottleOptions {
  readonly settings: SettingsReader;
  /** Monotonic milliseconds. */
  readonly elapsed: Clock;
  readonly timer: ThrottleTimer;
  /** Other nodes of a cluster have parts of the same quotas. */
  readonly shared?: SharedBandwidth | undefined;
}

export interface ThrottleCounters {
  /** Streams under the limiter now. */
  readonly streams: number;
  /** Streams that wait for bandwidth. */
  readonly waiting: number;
  readonly quotas: number;
  /** Users and networks with a stream, counted in each quota. */
  readonly persons: number;
  readonly chargedBytes: number;
}

export class Throttle {
  readonly #options: ThrottleOptions;
  readonly #host: StreamHost;
  readonly #buckets = new Map<string, FairBucket>();
  #cancelTimer: (() => void) | undefined;
  #chargedBytes = 0;

  constructor(options: ThrottleOptions) {
    this.#options = options;
    this.#host = {
      elapsed: options.elapsed,
      settings: options.settings,
      onCharge: (sizeBytes, owing) => {
        this.#chargedBytes += sizeBytes;
        if (owing) this.#schedule();
      },
    };
  }

  open(direction: Direction, owner: StreamOwner): ThrottledStream {
    return new Stream(this.#host, () => this.#bucketOf(direction, owner), personOf(owner));
  }

  counters(): ThrottleCounters {
    const buckets = [...this.#buckets.values()];
    const sum = (pick: (bucket: FairBucket) => number) => buckets.reduce((all, each) => all + pick(each), 0);
    return {
      streams: sum(({ present }) => present),
      waiting: sum(({ waiting }) => waiting),
      quotas: buckets.length,
      persons: sum(({ persons }) => persons),
      chargedBytes: this.#chargedBytes,
    };
  }

  /** No interval follows. Streams that still wait are not called. */
  close(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#buckets.clear();
  }

  #bucketOf(direction: Direction, owner: StreamOwner): FairBucket {
    const { settings, elapsed, shared } = this.#options;
    const key = `${direction} ${quotaKey(settings.get('FileBandwidthKey'), owner)}`;
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      if (this.#buckets.size >= BUCKETS_MAX) this.#forgetUnused();
      const quota = () => settings.get(QUOTA_SETTING[direction]);
      bucket =
        shared === undefined
          ? new FairBucket(quota, elapsed())
          : new FairBucket(
              () => quota() * shared.shareOf(key),
              elapsed(),
              (persons) => shared.note(key, persons),
            );
      this.#buckets.set(key, bucket);
    }
    return bucket;
  }

  #forgetUnused(): void {
    const nowMs = this.#options.elapsed();
    for (const [key, bucket] of this.#buckets) if (bucket.isFresh(nowMs)) this.#buckets.delete(key);
  }

  /** Intervals run while a stream owes. */
  #schedule(): void {
    this.#cancelTimer ??= this.#options.timer(TURN_MS, () => this.#runInterval());
  }

  #runInterval(): void {
    this.#cancelTimer = undefined;
    const nowMs = this.#options.elapsed();
    const buckets = [...this.#buckets.values()];
    for (const bucket of buckets) for (const debtor of bucket.turn(nowMs)) debtor.clear();
    if (buckets.some(({ waiting }) => waiting > 0)) this.#schedule();
  }
}

/** Dependencies that all streams of a throttle share. */
interface StreamHost {
  readonly elapsed: Clock;
  readonly settings: SettingsReader;
  /** Called for every charge. `owing`: it is not paid yet. */
  readonly onCharge: (sizeBytes: number, owing: boolean) => void;
}

class Stream implements ThrottledStream, Debtor {
  readonly #host: StreamHost;
  /** The quota that it shares, by the current value of FileBandwidthKey. */
  readonly #bucketOf: () => FairBucket;
  readonly #person: string;
  #key: string;
  #bucket: FairBucket;
  onClear: (() => void) | undefined;
  #owing = false;
  #left = false;
  #waiters: (() => void)[] = [];

  constructor(host: StreamHost, bucketOf: () => FairBucket, person: string) {
    this.#host = host;
    this.#bucketOf = bucketOf;
    this.#person = person;
    this.#key = host.settings.get('FileBandwidthKey');
    this.#bucket = bucketOf();
    this.#bucket.join(this, person, host.elapsed());
  }

  get owing(): boolean {
    return this.#owing;
  }

  charge(sizeBytes: number): boolean {
    if (this.#left) return true;
    if (!this.#owing) this.#followKey();
    this.#owing = !this.#bucket.charge(this, sizeBytes, this.#host.elapsed());
    this.#host.onCharge(sizeBytes, this.#owing);
    return !this.#owing;
  }

  clear(): void {
    if (this.#left) return;
    this.#owing = false;
    this.#wake();
    this.onClear?.();
  }

  paid(): Promise<void> {
    if (!this.#owing) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiters.push(resolve);
    });
  }

  ask(wantedBytes: number, go: (bytes: number) => void): void {
    const { bytesPerSecond } = this.#bucket;
    const bytes = Math.min(wantedBytes, askBytes(bytesPerSecond, this.#bucket.sharersOf(this)));
    this.onClear = () => {
      this.onClear = undefined;
      go(bytes);
    };
    if (this.charge(bytes)) this.onClear();
  }

  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#owing = false;
    this.onClear = undefined;
    this.#bucket.leave(this, this.#host.elapsed());
    this.#wake();
  }

  /** A change of the setting applies to running streams; a debt is paid to the former quota first. */
  #followKey(): void {
    const { settings, elapsed } = this.#host;
    const key = settings.get('FileBandwidthKey');
    if (key === this.#key) return;
    this.#key = key;
    this.#bucket.leave(this, elapsed());
    this.#bucket = this.#bucketOf();
    this.#bucket.join(this, this.#person, elapsed());
  }

  #wake(): void {
    if (this.#waiters.length === 0) return;
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }
}

function askBytes(bytesPerSecond: number, sharers: number): number {
  if (bytesPerSecond === 0) return ASK_BYTES_MAX;
  const share = bytesPerSecond / Math.max(1, sharers);
  const least = Math.min(ASK_BYTES_MIN.fast, Math.max(ASK_BYTES_MIN.slow, share));
  const wanted = (share * TURN_MS * ASK_INTERVALS) / SECOND_MS;
  return Math.floor(Math.min(ASK_BYTES_MAX, Math.max(least, wanted)));
}
