/**
 * Work of one node of a cluster for all: the set-up link, the application of unregistered hosts, work with an owner.
 */
import t from 'tap';
import { user } from '../../src/actors/accounts/user.ts';
import { settings } from '../../src/actors/admin/settings.ts';
import { staff } from '../../src/actors/admin/staff.ts';
import { app } from '../../src/actors/apps/app.ts';
import { OWNS_ALL } from '../../src/actors/runtime/ownership.ts';
import { ROW_VERSION } from '../../src/actors/runtime/replication/entry.ts';
import { Members } from '../../src/actors/runtime/replication/members.ts';
import type { ReplicaListener } from '../../src/actors/runtime/replication/replica.ts';
import { OwnedWork } from '../../src/bootstrap/cluster/owned-work.ts';
import { openStaff } from '../../src/bootstrap/staff.ts';
import { HOSTS_APP_ID } from '../../src/domain/apps.ts';
import { openHostsRow } from '../../src/io/connect/clients.ts';
import { createTestActors } from '../support/actors/actors.ts';
import { makeSite } from '../support/http.ts';

const KINDS = [app, settings, staff, user];

/** Owns what has this id, and notes what it was asked for. */
function ownerOf(owned: string) {
  const asked: string[] = [];
  const owns = (kind: string, id: string) => {
    asked.push(`${kind}:${id}`);
    return id === owned;
  };
  return { asked, owns };
}

// covers C7
t.test('set-up link: the owner of the staff alone has one', async (t) => {
  const { system } = createTestActors({ kinds: KINDS });
  const site = makeSite(80, { baseUrl: 'https://gate.example' });
  const owner = ownerOf('all');
  const [one, other, alone] = await Promise.all(
    [owner, ownerOf('none'), OWNS_ALL].map((ownership) => openStaff(system, system, site, ownership)),
  );
  t.same(owner.asked, ['staff:all']);
  t.match(one, { setupAddress: /^https:\/\/gate\.example\/ProxyAdmin\/Setup#/, setupLinks: { current: {} } });
  t.same([other?.setupAddress, other?.setupLinks.current], [undefined, undefined]);
  t.type(alone?.setupAddress, 'string');
});

t.test('unregistered hosts: the owner of their application alone opens it', async (t) => {
  const { system } = createTestActors({ kinds: KINDS });
  const url = 'https://gate.example';
  const other = ownerOf('none');
  await openHostsRow(system, url, other);
  t.same(other.asked, [`app:${HOSTS_APP_ID}`]);
  t.equal(system.lookup('appId', HOSTS_APP_ID), undefined);
  await openHostsRow(system, url, ownerOf(HOSTS_APP_ID));
  t.type(system.lookup('appId', HOSTS_APP_ID), 'string');
});

const figures = {
  readsRows: ROW_VERSION,
  leaseMs: 1,
  clockOffsetMs: 0,
  links: 0,
  turnsRefused: 0,
  turnsThrown: 0,
};
const { readsRows: _, ...earlier } = figures;

t.test('work with an owner: none while a member does not say that it applies rows with events', async (t) => {
  const work = new OwnedWork(ownerOf('all'));
  const readings = [
    { nodes: undefined, owns: false },
    { nodes: [{ joined: true, figures }], owns: true },
    { nodes: [figures, earlier].map((each) => ({ joined: true, figures: each })), owns: false },
    { nodes: [{ joined: true, figures: undefined }], owns: false },
    { nodes: [{ joined: false, figures: earlier }], owns: true },
  ];
  for (const { nodes, owns } of readings) {
    if (nodes !== undefined) work.read(nodes);
    t.equal(work.membersReadEvents, owns, JSON.stringify(nodes));
    t.equal(work.owns('eventLog', 'all'), owns);
    t.equal(work.owns('eventLog', 'other'), false, 'the owner decides besides');
  }
});

t.test(
  'work with an owner: one listener of members calls all, as does a reading with another answer',
  async (t) => {
    const work = new OwnedWork(OWNS_ALL);
    const listeners: ReplicaListener[] = [];
    work.followMembers({ follow: (listener) => void listeners.push(listener) });
    const called: string[] = [];
    work.follow(() => called.push('events'));
    work.follow(() => called.push('webhooks'));
    listeners[0]?.membersChanged(new Members(), new Members(), { type: 'join' });
    t.same(called.splice(0), ['events', 'webhooks']);
    for (let reading = 0; reading < 2; reading += 1) work.read([{ joined: true, figures }]);
    t.same(called.splice(0), ['events', 'webhooks'], 'once');
    await work.wasRead();
  },
);
