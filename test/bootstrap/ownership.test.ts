/** What one node of a cluster does at a start for all: the set-up link, the application of unregistered hosts. */
import t from 'tap';
import { user } from '../../src/actors/accounts/user.ts';
import { settings } from '../../src/actors/admin/settings.ts';
import { staff } from '../../src/actors/admin/staff.ts';
import { app } from '../../src/actors/apps/app.ts';
import { OWNS_ALL } from '../../src/actors/runtime/ownership.ts';
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
