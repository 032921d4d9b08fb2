/**
 * Proof that nodes share a folder of files, over folders in memory with clocks that the test moves: three nodes as the
 * table of nodes tells them to each other.
 */
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../../kit/close-after.ts';
import { FileCalls } from '../../../../src/io/files/storage/file-calls.ts';
import { FolderProof } from '../../../../src/io/files/storage/folder-proof.ts';
import { MarkerFolder, type Markers } from '../../../../src/io/files/storage/marker-folder.ts';
import { ManualClock } from '../../../support/actors/actors.ts';
import { temporaryFolder } from '../../../support/files/file-storage.ts';

/** Names of a folder; while it hangs, no call settles. */
class Folder implements Markers {
  names: Set<string>;
  isHung = false;
  fault: Error | undefined;
  calls = 0;

  constructor(names: Iterable<string> = []) {
    this.names = new Set(names);
  }

  write(node: number, value: string): Promise<void> {
    return this.#call(() => void this.names.add(`${node}.${value}`));
  }

  has(node: number, value: string): Promise<boolean> {
    return this.#call(() => this.names.has(`${node}.${value}`));
  }

  trim(node: number, kept: readonly string[]): Promise<void> {
    return this.#call(() => {
      for (const name of this.names)
        if (name.startsWith(`${node}.`) && !kept.some((value) => name.endsWith(value)))
          this.names.delete(name);
    });
  }

  async #call<T>(work: () => T): Promise<T> {
    this.calls += 1;
    if (this.isHung) return await new Promise<never>(() => undefined);
    if (this.fault !== undefined) throw this.fault;
    return work();
  }
}

interface Node {
  readonly number: number;
  readonly proof: FolderProof;
  readonly changes: string[];
  faults: number;
  joined: boolean;
  /** Says what an older program says: nothing. */
  isOld: boolean;
}

class Cluster {
  readonly clock = new ManualClock(0);
  readonly nodes: Node[] = [];
  #values = 0;

  add(markers: Markers, joined = true): Node {
    const changes: string[] = [];
    const number = this.nodes.length + 1;
    const proof = new FolderProof({
      markers,
      newValue: () => {
        this.#values += 1;
        return this.#values.toString(16).padStart(32, '0');
      },
      schedule: this.clock,
      monotonicMs: this.clock.read,
      onChange: (isShared, missing) =>
        changes.push([isShared ? 'shared' : 'apart', ...missing.map(String)].join(' ')),
      onFault: () => {
        node.faults += 1;
      },
    });
    const node: Node = { number, proof, changes, faults: 0, joined, isOld: false };
    this.nodes.push(node);
    return node;
  }

  /** Each node reads the table once a second, as it stood at the beginning of that second. */
  async run(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second += 1) {
      await this.read();
      const untilMs = this.clock.nowMs + 1_000;
      while (this.clock.fireNext(untilMs)) await settled();
      this.clock.nowMs = untilMs;
    }
  }

  async read(): Promise<void> {
    const table = this.nodes.map(({ number, joined, isOld, proof }) => ({
      node: number,
      joined,
      figures: isOld ? {} : { marker: proof.marker ?? null },
    }));
    for (const { number, proof } of this.nodes) proof.read(number, table);
    await settled();
  }

  get shared(): boolean[] {
    return this.nodes.map(({ proof }) => proof.isShared);
  }
}

async function settled(): Promise<void> {
  for (let turns = 0; turns < 4; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}

function open(t: Test, folders: readonly Markers[]): Cluster {
  const cluster = new Cluster();
  for (const folder of folders) cluster.add(folder);
  t.teardown(() => {
    for (const { proof } of cluster.nodes) proof.close();
  });
  return cluster;
}

// covers C26
t.test('shared folder: three nodes over one find each other, and stay so for minutes', async (t) => {
  const folder = new Folder(['1.left', '1.over', '9.of another number', 'a text']);
  const cluster = open(t, [folder, folder, folder]);
  await cluster.run(3);
  t.same(cluster.shared, [true, true, true]);
  await cluster.nodes[0]?.proof.shared();
  await cluster.run(600);
  for (const { changes, faults } of cluster.nodes) t.same([changes, faults], [['shared'], 0]);
  t.equal(folder.names.size, 3 * 2 + 2, 'the newest two of each, and what is none of theirs');
  t.ok(folder.calls < 3 * 10 * 8, `${folder.calls} calls in ten minutes`);
});

t.test('shared folder: with three folders of their own no node has the folder of most', async (t) => {
  const folders = [new Folder(), new Folder(), new Folder()] as const;
  const cluster = open(t, folders);
  await cluster.run(9);
  t.same(cluster.shared, [false, false, false]);
  t.same(
    cluster.nodes.map(({ changes }) => changes.at(-1)),
    ['apart 2 3', 'apart 1 3', 'apart 1 2'],
  );
  await cluster.run(120);
  t.same(cluster.shared, [false, false, false], 'new values change nothing');
  const [{ names }] = folders;
  for (const folder of folders) folder.names = names;
  await cluster.run(9);
  t.same(cluster.shared, [true, true, true], 'one folder was mounted at all');
  t.same(
    cluster.nodes.map(({ changes }) => changes.at(-1)),
    ['shared', 'shared', 'shared'],
  );
});

t.test('shared folder: one node with another folder is apart, and the others serve on', async (t) => {
  const folder = new Folder();
  const cluster = open(t, [folder, folder]);
  await cluster.run(3);
  const third = cluster.add(new Folder());
  await cluster.run(9);
  t.same(cluster.shared, [true, true, false]);
  t.same(third.changes, ['apart 1 2'], 'never shared');
  for (const { changes } of cluster.nodes.slice(0, 2)) t.same(changes, ['shared', 'shared 3']);
});

t.test('shared folder: a copy of it is recognised within a minute and five seconds', async (t) => {
  const folder = new Folder();
  const cluster = open(t, [folder, folder]);
  await cluster.run(30);
  const third = cluster.add(new Folder(folder.names));
  await cluster.run(3);
  t.equal(third.proof.isShared, true, 'its values are those of now');
  await cluster.run(62);
  t.same(cluster.shared, [true, true, false]);
});

t.test('shared folder: of two nodes the one that served before serves on', async (t) => {
  const first = new Folder();
  const cluster = open(t, [first]);
  await cluster.run(2);
  t.same(cluster.shared, [true], 'alone');
  const second = cluster.add(new Folder());
  await cluster.run(9);
  t.same(cluster.shared, [true, false]);
  const [a] = cluster.nodes;
  if (a === undefined) throw new Error('no node');
  a.joined = false;
  await cluster.run(9);
  t.equal(second.proof.isShared, false, 'it is alone now, and still has another folder');
  t.equal(a.proof.isShared, false, 'out');
  a.joined = true;
  await cluster.run(9);
  t.same(cluster.shared, [false, false], 'the second may have served meanwhile: a person decides');
});

t.test('shared folder: two nodes that start at once with folders of their own both wait', async (t) => {
  const cluster = open(t, [new Folder(), new Folder()]);
  await cluster.run(30);
  t.same(cluster.shared, [false, false]);
});

t.test('shared folder: one that comes back after it was expelled is served again at once', async (t) => {
  const folder = new Folder();
  const cluster = open(t, [folder, folder, folder]);
  await cluster.run(3);
  const [a] = cluster.nodes;
  if (a === undefined) throw new Error('no node');
  a.joined = false;
  await cluster.read();
  t.same(cluster.shared, [false, true, true]);
  a.joined = true;
  await cluster.read();
  t.same(cluster.shared, [true, true, true]);
});

t.test(
  'shared folder: a file system that hangs costs one call, and is noticed in five seconds',
  async (t) => {
    const folder = new Folder();
    const cluster = open(t, [folder, folder]);
    const hanging = new Folder();
    const third = cluster.add({
      write: (node, value) => (hanging.isHung ? hanging : folder).write(node, value),
      has: (node, value) => (hanging.isHung ? hanging : folder).has(node, value),
      trim: (node, kept) => (hanging.isHung ? hanging : folder).trim(node, kept),
    });
    await cluster.run(3);
    t.equal(third.proof.isShared, true);
    hanging.isHung = true;
    await cluster.run(70);
    t.same(cluster.shared, [true, true, false]);
    t.equal(hanging.calls, 1);
    t.equal(third.faults, 0);
  },
);

t.test('shared folder: a full disk stops no node, and values of no form are no names', async (t) => {
  const folder = new Folder();
  const cluster = open(t, [folder, folder]);
  await cluster.run(3);
  folder.fault = new Error('ENOSPC');
  await cluster.run(130);
  t.same(cluster.shared, [true, true], 'the values that were said are found');
  t.ok(cluster.nodes.every(({ faults }) => faults > 60));
  const [a] = cluster.nodes;
  folder.fault = undefined;
  const before = folder.calls;
  a?.proof.read(1, [
    { node: 1, joined: true, figures: {} },
    { node: 2, joined: true, figures: { marker: '../../etc/passwd' } },
  ]);
  await settled();
  t.ok(folder.calls <= before + 2, 'no look for it');
});

t.test('shared folder: a node of an older program, which says no value, does not count', async (t) => {
  const cluster = open(t, [new Folder(), new Folder()]);
  for (const node of cluster.nodes) node.isOld = true;
  await cluster.run(3);
  t.same(cluster.shared, [true, true]);
});

t.test(
  'markers: each is a file of the node below the id of the log, and trimming leaves the others',
  async (t) => {
    const root = temporaryFolder(t);
    const calls = closeAfter(t, new FileCalls());
    const [own, other] = [new MarkerFolder(root, 'log-1', calls), new MarkerFolder(root, 'log-2', calls)];
    t.equal(await own.has(2, 'aa'), false, 'there is no folder yet');
    for (const value of ['aa', 'bb', 'cc']) await own.write(2, value);
    await own.write(22, 'aa');
    await own.trim(2, ['cc', 'bb']);
    t.same(readdirSync(join(root, '.gatehouse/log-1')).sort(), ['2.bb', '2.cc', '22.aa']);
    t.same([await own.has(2, 'cc'), await own.has(2, 'aa'), await own.has(2, 'c')], [true, false, false]);
    t.equal(await other.has(2, 'cc'), false, 'a log of its own');
    await t.rejects(own.write(2, 'cc'), { code: 'EEXIST' });
    mkdirSync(join(root, '.gatehouse/log-1/2.dd'));
    t.equal(await own.has(2, 'dd'), false, 'no file');
    t.equal(calls.counters().running, 0);
  },
);
