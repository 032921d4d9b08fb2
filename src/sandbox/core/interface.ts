/** Requests and answers of the endpoints of the sandbox core module. docs/modules.openapi.json is printed from it. */
import type { Interface } from '../module.ts';
import { ID, ID_GIVEN, list, nullable, object, TEXT, UTC } from '../schemas.ts';

const NOTICE = object({ id: ID, fromUserId: ID, toUserId: nullable(ID), text: TEXT, dateTime: UTC });

export const CORE_SCHEMAS = { Notice: NOTICE };

export const CORE_ENDPOINTS = {
  'POST notices/create': {
    name: 'core_notices_create',
    summary: 'A notice to one user, or to all users',
    takes: object({ text: { type: 'string', maxLength: 1000 }, toUserId: ID_GIVEN }, ['toUserId']),
    gives: NOTICE,
  },
  'GET notices/list': {
    name: 'core_notices_list',
    summary: 'Notices for all users, to the user and by the user, newest first',
    takes: object({ before: ID, limit: { type: 'integer', minimum: 1, maximum: 100, default: 20 } }, [
      'before',
      'limit',
    ]),
    gives: object({ notices: list(NOTICE), next: nullable(ID) }),
  },
} as const satisfies Interface;
