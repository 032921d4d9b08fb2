/** Admin JSON of roles, and the claim of the first admin through the set-up link. */

import { user } from '../../../actors/accounts/user.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { KEY_EXAMPLE } from '../../../domain/examples.ts';
import { ROLES } from '../../../domain/roles.ts';
import { array, idText, int64, named, nullable, object, oneOf, text } from '../../../domain/schema.ts';
import { requireId } from '../../accounts/login-parts.ts';
import { nicknameSchema, withNicknames } from '../../accounts/nicknames.ts';
import type { AdminNodes } from '../../admin/nodes.ts';
import { requireFresh } from '../../admin/pagination.ts';
import type { LiveStaff } from '../../admin/staff.ts';
import { type AnyRoute, adminRoute, defineRoute } from '../../http/table/route.ts';

export interface StaffDeps {
  readonly staff: LiveStaff;
  readonly nodes: Pick<AdminNodes, 'useLink' | 'endSetup'>;
}

const roleItem = named('StaffRole', object({ userId: idText(), role: oneOf(ROLES) }));

export function createAdminStaffRoutes(deps: StaffDeps): AnyRoute[] {
  return [listRoute(deps), changeRoute(deps), claimRoute(deps)];
}

function listRoute({ staff }: StaffDeps): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/staff',
    summary: 'Accounts with a role in the admin panel',
    description: 'Roles are viewer, support and admin. Keys of `Admin.publicKeys` make admins too.',
    result: array(named('StaffMember', object({ ...roleItem.properties, nickname: nicknameSchema }))),
    handle: ({ actors }) => withNicknames(actors, staff.list(), ({ userId }) => userId),
  });
}

function changeRoute({ staff }: StaffDeps): AnyRoute {
  return adminRoute({
    method: 'POST',
    path: '/ProxyAdmin/api/staff',
    summary: 'Give an account a role, or take it away with null',
    description: 'Without a role an account has no access to the panel. Needs a recent login.',
    body: object({ userId: int64('User id: decimal string'), role: nullable(oneOf(ROLES)) }),
    result: object({ userId: idText(), role: nullable(oneOf(ROLES)) }),
    errors: ['FreshLoginRequired', 'NotFound'],
    handle(context) {
      requireFresh(context);
      const { actors, body, client, session } = context;
      const userId = requireId(body.userId, 'userId');
      if (!actors.exists(user, userId)) throw new GatewayError('NotFound');
      return staff.set({ userId, role: body.role, by: session.userId, address: client.address });
    },
  });
}

/** The link proves access to the console of the program. From then on the passkey opens the panel. */
function claimRoute({ staff, nodes }: StaffDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/ProxyAdmin/api/claim',
    summary: 'Become an admin with the token of the set-up or recovery link',
    description:
      'For accounts that logged in with a passkey. A start without any admin prints the set-up link, `admin recover` the recovery link; each works once.',
    group: 'admin',
    auth: 'session',
    adminAddresses: true,
    body: object({
      token: text({ minLength: 1, maxLength: 64, examples: [KEY_EXAMPLE] }),
    }),
    result: roleItem,
    errors: ['SetupLinkOver'],
    async handle({ body, client, session }) {
      const isPasskey = session.keyType === 'FIDO2';
      const recovers = await nodes.useLink(body.token, isPasskey);
      if (!isPasskey) throw new GatewayError('Forbidden', 'a passkey is needed');
      const { userId } = session;
      await staff.setFirst(userId, client.address, recovers);
      await nodes.endSetup();
      return { userId, role: 'admin' };
    },
  });
}
