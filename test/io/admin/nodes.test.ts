/** Questions of one node's panel to the others, over nodes with one log in memory: failed actors, reloads, links. */
import t, { type Test } from 'tap';
import { stopAfter } from '../../../kit/close-after.ts';
import { Departure } from '../../../src/actors/departure.ts';
import { ownerUnavailable, type RemoteReply } from '../../../src/actors/routed-system.ts';
import { nodeSchedule } from '../../../src/actors/runtime/runtime-context.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { Fault } from '../../../src/domain/schema.ts';
import { Dashboard } from '../../../src/io/admin/dashboard.ts';
import { createNodeLinks } from '../../../src/io/admin/node-links.ts';
import { createNodeWork, NODE_VERBS, nodeVerbs } from '../../../src/io/admin/node-work.ts';
import { AdminNodes } from '../../../src/io/admin/nodes.ts';
import { SetupLink, SetupLinks } from '../../../src/io/admin/staff.ts';
import { account } from '../../support/actors/account-kind.ts';
import { TestCluster, type TestMember } from '../../support/actors/cluster.ts';
import { noTroubles, testHistory } from '../../support/panel/history.ts';
import { rejectsWith } from '../../support/rejections.ts';

interface Panel {
  readonly member: TestMember;
  readonly nodes: AdminNodes;
  readonly setupLinks: SetupLinks;
  readonly verbs: ReturnType<typeof nodeVerbs>;
  /** Faults in the file of this node. */
  faults: readonly Fault[];
  reloads: number;
}

const NAMES = ['a', 'b', 'c'] as const;

/** Three nodes with their panels. A node that is unlinked answers nothing. */
async function openPanels(t: Test): Promise<{
  readonly cluster: TestCluster;
  readonly panels: readonly [Panel, Panel, Panel];
}> {
  const cluster = stopAfter(t, new TestCluster([account]));
  const panels: Panel[] = [];
  const call = async (node: number, verb: string, ...args: readonly unknown[]): Promise<RemoteReply> => {
    const panel = panels.find(({ member }) => member.node.node === node);
    if (panel === undefined || panel.member.isUnlinked) throw ownerUnavailable();
    const { member, verbs } = panel;
    const name = NODE_VERBS.find((each) => each === verb);
    if (name === undefined) throw new Error(`there is no verb ${verb}`);
    try {
      const value = await verbs[name](...args);
      return { position: member.view.position, value };
    } catch (error) {
      return { position: member.view.position, error: error as Error };
    }
  };
  for (const name of NAMES) panels.push(openPanel(await cluster.add(name), name, cluster, call));
  await cluster.advance(1_000);
  const [a, b, c] = panels;
  if (a === undefined || b === undefined || c === undefined) throw new Error('too few nodes');
  return { cluster, panels: [a, b, c] };
}

function openPanel(
  member: TestMember,
  name: string,
  cluster: TestCluster,
  call: (node: number, verb: string, ...args: readonly unknown[]) => Promise<RemoteReply>,
): Panel {
  const setupLinks = new SetupLinks();
  const { node, replica, view } = member;
  const work = createNodeWork({
    administration: member.system.administration,
    dashboard: new Dashboard(() => ({})),
    history: testHistory(cluster.clock.read).history,
    setupLinks,
    catalog: { current: { tools: new Map(), resources: new Map() } },
    reload() {
      panel.reloads += 1;
      return panel.faults;
    },
    troubles: noTroubles,
    modules: () => [],
    clock: cluster.clock.read,
  });
  const links = createNodeLinks({
    name,
    routing: {
      node: node.node,
      departure: new Departure(nodeSchedule),
      ownerOf: (kind, id) => replica.members.ownerOf(kind, id),
      appliedAtLeast: (position) => replica.appliedAtLeast(position),
    },
    members: () => replica.members.nodes(),
    nameOf: (number) => NAMES[number - 1] ?? '',
    report: () => Promise.reject(ownerUnavailable()),
    call,
  });
  const panel: Panel = {
    ...{ member, setupLinks, faults: [], reloads: 0 },
    nodes: new AdminNodes(work, links),
    verbs: nodeVerbs(work, (kind, id) => view.owns(kind, id)),
  };
  return panel;
}

/** An actor of this node in quarantine, before two messages; its id. */
async function quarantined(cluster: TestCluster, { member }: Panel): Promise<string> {
  const id = cluster.idOf(member, account);
  for (let failure = 1; failure <= 6; failure += 1) {
    await member.system.ask(account, id, { type: 'crash' }).catch(() => undefined);
    await cluster.advance(8_000);
  }
  for (const text of ['bad', 'good']) {
    const told = member.system.tell(account, id, { type: 'receive', text });
    await cluster.settle();
    await told;
  }
  member.fatal.length = 0;
  return id;
}

// covers C17
t.test('nodes: an actor that fails at its owner is shown and reset by the panel of any node', async (t) => {
  const { cluster, panels } = await openPanels(t);
  const [a, b] = panels;
  const id = await quarantined(cluster, b);
  const listed = { kind: 'account', id, quarantined: true, failures: 6, node: 'b' };
  for (const { nodes } of panels) t.same(await nodes.failing(), { failing: [listed], missing: [] });
  t.equal(await a.nodes.reset('account', id), true);
  await cluster.settle();
  t.same(await b.nodes.failing(), { failing: [], missing: [] });
  t.same((await b.member.system.query(account, id, { type: 'state' })).received, ['bad', 'good']);
  t.equal(await a.nodes.reset('account', id), false, 'it has failed at no node any more');
});

// covers C17
t.test('nodes: a skip is done at the owner, and its dead letter is removed from any node', async (t) => {
  const { cluster, panels } = await openPanels(t);
  const [a, b, c] = panels;
  const id = await quarantined(cluster, b);
  t.equal(await a.nodes.skip('account', id), true);
  const [letter] = a.member.system.administration.dead(10);
  t.match(
    letter,
    { kind: 'account', id, reason: 'skipped by an administrator' },
    'this node shows it at once',
  );
  await cluster.settle();
  t.same((await b.member.system.query(account, id, { type: 'state' })).received, ['good']);
  t.equal(await a.nodes.skip('account', id), false, 'there is no message any more');
  if (letter !== undefined) await c.member.system.administration.removeDead(letter);
  await cluster.settle();
  for (const { member } of panels) t.same(member.system.administration.dead(10), []);
});

t.test('nodes: one that does not answer is named, and may be the one that knows', async (t) => {
  const { cluster, panels } = await openPanels(t);
  const [a, b] = panels;
  const id = await quarantined(cluster, b);
  b.member.isUnlinked = true;
  t.same(await a.nodes.failing(), { failing: [], missing: ['b'] });
  await rejectsWith(t, a.nodes.reset('account', id), 'Overloaded');
  await rejectsWith(t, a.nodes.skip('account', id), 'Overloaded');
  b.member.isUnlinked = false;
  t.equal(await a.nodes.reset('account', id), true);
});

t.test('nodes: a skip that reaches a node that is not the owner changes nothing', async (t) => {
  const { cluster, panels } = await openPanels(t);
  const [a, b] = panels;
  const id = await quarantined(cluster, b);
  t.throws(() => a.verbs.skip('account', id), { name: 'NotOwner' });
  t.throws(() => a.verbs.reset('account'), TypeError);
  t.match(await b.nodes.failing(), { failing: [{ id }] });
});

t.test('nodes: a reload is done at all; those whose catalog stays are named', async (t) => {
  const { panels } = await openPanels(t);
  const [a, b, c] = panels;
  const fault = { path: 'McpTools.x', message: 'is missing' };
  t.match(await a.nodes.reload(), { own: { faults: [] }, others: { missing: [] } });
  t.same(
    panels.map(({ reloads }) => reloads),
    [1, 1, 1],
  );
  b.faults = [fault];
  c.member.isUnlinked = true;
  t.match(await a.nodes.reload(), {
    own: { faults: [] },
    others: { answers: [{ name: 'b', value: { faults: [fault] } }], missing: ['c'] },
  });
  c.member.isUnlinked = false;
  t.match(await b.nodes.reload(), { own: { faults: [fault] }, others: { answers: [], missing: [] } });
  t.same([a.reloads, c.reloads], [2, 1], 'a file that is refused here reaches no other node');
});

// covers C7
t.test('nodes: the link of one node is good at any, once, and not while that node is away', async (t) => {
  const { cluster, panels } = await openPanels(t);
  const [a, b] = panels;
  const { nowMs } = cluster.clock;
  a.setupLinks.current = new SetupLink('of a', nowMs);
  b.setupLinks.current = new SetupLink('recovery at b', nowMs, true);
  const over = (token: string) => rejectsWith(t, a.nodes.useLink(token, true), 'SetupLinkOver');
  await over('unknown');
  t.equal(await b.nodes.useLink('of a', true), false);
  t.equal(await a.nodes.useLink('recovery at b', false), true, 'a look does not use it up');
  b.member.isUnlinked = true;
  await rejectsWith(t, a.nodes.useLink('recovery at b', true), 'Overloaded');
  b.member.isUnlinked = false;
  t.equal(await a.nodes.useLink('recovery at b', true), true);
  await over('recovery at b');
  await b.nodes.endSetup();
  await over('of a');
});

t.test('nodes: without Cluster there is no other node, and nothing is sent', async (t) => {
  const cluster = stopAfter(t, new TestCluster([account]));
  const member = await cluster.add('a');
  const work = createNodeWork({
    administration: member.system.administration,
    dashboard: new Dashboard(() => ({})),
    history: testHistory(cluster.clock.read).history,
    setupLinks: new SetupLinks(),
    catalog: { current: { tools: new Map(), resources: new Map() } },
    reload: () => [],
    troubles: noTroubles,
    modules: () => [],
    clock: cluster.clock.read,
  });
  const nodes = new AdminNodes(work);
  t.same([nodes.name, nodes.others(), await nodes.report()], ['', [], []]);
  t.same(await nodes.failing(), { failing: [], missing: [] });
  t.equal(await nodes.reset('account', '1'), false);
  t.equal(await nodes.skip('account', '1'), false);
  t.match(await nodes.reload(), { own: { faults: [] }, others: { answers: [], missing: [] } });
  await rejectsWith(t, nodes.useLink('x', true), 'SetupLinkOver');
  t.ok(
    await nodes.figures('b').then(
      () => false,
      (error: unknown) => error instanceof GatewayError,
    ),
  );
});
