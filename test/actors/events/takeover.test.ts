/** The log of events while its owner changes: faults that nodes with numbers of their own have. */
import t, { type Test } from 'tap';
import { SimulatedCluster, type SimulatedProcess, settled } from '../../support/actors/simulated-cluster.ts';
import { EventDisk, EventProcess, eventsOf, opened } from '../../support/events/event-process.ts';
import { rejectsWith } from '../../support/rejections.ts';

/** Longer than an expulsion and a return take. */
const TAKEOVER_MS = 4_000;
/** Longer than an event waits for its turn. */
const RELEASE_MS = 700;

type Process = SimulatedProcess<EventProcess>;

class EventCluster extends SimulatedCluster<EventProcess> {
  constructor(t: Test) {
    super({
      random: () => 0,
      isReliable: true,
      start: (tools) => new EventProcess({ disk: new EventDisk(), tools }),
      onFatal: (name, error) => t.fail(`${name} ended: ${error.message}`),
      check: () => undefined,
    });
  }

  async add(name: string): Promise<Process> {
    const process = this.startProcess(name);
    await settled();
    await this.pass(1_000);
    return process;
  }

  get owner(): Process {
    const owner = this.processes.find(({ app }) => app.isOwner);
    if (owner === undefined) throw new Error('no node owns the log of events');
    return owner;
  }

  otherThan(process: Process): Process {
    const other = this.processes.find((each) => each !== process);
    if (other === undefined) throw new Error('one process runs');
    return other;
  }

  /** Writes of a process stay on their way from now on; returns what lets them through. */
  holdWrites({ client }: Process): () => void {
    this.holds = (call) => call.client === client.client && call.method === 'append';
    return () => {
      this.holds = () => false;
    };
  }

  /** Its log as a node shows it. */
  logOf({ app }: Process) {
    return opened(app)
      .log.page(0, 100)
      .map(({ sequence, module, tick }) => `${sequence} ${module} ${tick}`);
  }
}

const accept = ({ app }: Process, ...ticks: number[]) =>
  opened(app).inbox.accept(eventsOf('wallet', ...ticks));

/** A cluster of three. Another process than the owner at the beginning owns the log while that one is out. */
async function start(t: Test): Promise<{ cluster: EventCluster; owner: Process; other: Process }> {
  const cluster = new EventCluster(t);
  for (const name of ['one', 'two', 'three']) await cluster.add(name);
  const { owner } = cluster;
  return { cluster, owner, other: cluster.otherThan(owner) };
}

/** The owner is out for a while, and comes back. */
async function outAndBack(
  cluster: EventCluster,
  owner: Process,
  meanwhile: () => Promise<void>,
): Promise<void> {
  owner.isCut = true;
  owner.isUnlinked = true;
  await cluster.pass(TAKEOVER_MS);
  await meanwhile();
  owner.isCut = false;
  owner.isUnlinked = false;
  await cluster.pass(TAKEOVER_MS);
}

t.test(
  'events: a release of an owner that returns overwrites no event of the owner in between',
  async (t) => {
    const { cluster, owner, other } = await start(t);
    const letThrough = cluster.holdWrites(owner);
    const accepted = accept(other, 1, 2);
    await cluster.pass(RELEASE_MS);
    t.same(await accepted, { accepted: 2, duplicates: 0 });
    letThrough();
    owner.isCut = true;
    await outAndBack(cluster, owner, async () => {
      t.not(cluster.owner, owner, 'another node owns the log');
      const more = accept(other, 3, 4);
      const published = opened(other.app).log.publish({ type: 'own', userId: '7', data: {} });
      await cluster.pass(RELEASE_MS);
      await Promise.all([more, published]);
      t.same(cluster.logOf(other).slice(0, 2), ['1 wallet 1', '2 wallet 2']);
    });
    t.equal(cluster.owner, owner, 'it is back');
    const [first, ...others] = cluster.processes.map((process) => cluster.logOf(process));
    t.equal(first?.length, 5);
    t.same(
      first?.filter((line) => line.includes('wallet')).map((line) => line.split(' ')[2]),
      ['1', '2', '3', '4'],
    );
    for (const each of others) t.same(each, first, 'all nodes have one order');
  },
);

t.test('events: the next owner continues the numbers of the last one', async (t) => {
  const { cluster, owner, other } = await start(t);
  const accepted = accept(owner, 1, 2);
  await cluster.pass(RELEASE_MS);
  await accepted;
  cluster.crash(owner);
  await cluster.pass(TAKEOVER_MS);
  const more = accept(other, 3);
  await cluster.pass(RELEASE_MS);
  await more;
  for (const process of cluster.processes)
    t.same(cluster.logOf(process), ['1 wallet 1', '2 wallet 2', '3 wallet 3'], process.name);
});

t.test(
  'events: a node whose release was fenced by a join takes events when it owns their log again',
  async (t) => {
    const cluster = new EventCluster(t);
    const first = await cluster.add('one');
    const accepted = accept(first, 1);
    await cluster.pass(100);
    await accepted;
    const letThrough = cluster.holdWrites(first);
    await cluster.pass(RELEASE_MS);
    let count = 1;
    while (cluster.owner === first) {
      count += 1;
      await cluster.add(`joined ${count}`);
    }
    letThrough();
    await cluster.pass(RELEASE_MS);
    for (const process of cluster.processes.filter((each) => each !== first)) {
      const left = process.app.leave();
      await cluster.pass(TAKEOVER_MS);
      await left;
      cluster.crash(process);
    }
    t.equal(cluster.owner, first);
    const again = accept(first, 2);
    await cluster.pass(RELEASE_MS);
    t.same(await again, { accepted: 1, duplicates: 0 });
    t.same(cluster.logOf(first), ['1 wallet 1', '2 wallet 2']);
  },
);

t.test(
  'events: an accept that lands after a return is in the log once, and answered as it was applied',
  async (t) => {
    const { cluster, owner, other } = await start(t);
    owner.isCut = true;
    const [late, known] = [accept(owner, 5), accept(owner, 6)];
    await outAndBack(cluster, owner, async () => {
      const first = accept(other, 6);
      await cluster.pass(RELEASE_MS);
      t.same(await first, { accepted: 1, duplicates: 0 });
    });
    await cluster.pass(RELEASE_MS);
    t.same(await late, { accepted: 1, duplicates: 0 });
    t.same(await known, { accepted: 0, duplicates: 1 });
    for (const process of cluster.processes)
      t.same(cluster.logOf(process), ['1 wallet 6', '2 wallet 5'], process.name);
  },
);

t.test('events: a cursor and its events are written together or not at all', async (t) => {
  const { cluster, owner, other } = await start(t);
  const { journal } = opened(owner.app).system.administration;
  const poll = (process: Process, tick: number, was?: string) => {
    const row = journal.pack(String(tick));
    const cursor = { op: 'metaOnce', key: 'part:eventFeed:wallet', row, ...(was && { was }) } as const;
    return opened(process.app).inbox.accept(eventsOf('wallet', tick), [cursor]);
  };
  const first = poll(owner, 1);
  await cluster.pass(RELEASE_MS);
  await first;
  for (const [process, tick, was] of [
    [other, 2, '1'],
    [owner, 3, '0'],
    [owner, 4, undefined],
  ] as const) {
    const refused = rejectsWith(t, poll(process, tick, was), 'Overloaded');
    await cluster.pass(RELEASE_MS);
    await refused;
  }
  const next = poll(owner, 5, '1');
  await cluster.pass(RELEASE_MS);
  await next;
  for (const process of cluster.processes) {
    t.same(cluster.logOf(process), ['1 wallet 1', '2 wallet 5'], process.name);
    t.equal(opened(process.app).system.administration.metaGet('eventFeed:wallet'), '5');
  }
});
