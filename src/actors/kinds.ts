/** The list of actor kinds. A kind that is not here cannot be asked, told or replayed. */
import { app } from './app.ts';
import { codeCourier } from './code-courier.ts';
import { codeDesk } from './code-desk.ts';
import { deliveryLog } from './delivery-log.ts';
import { draft } from './draft.ts';
import type { AnyKind } from './runtime/actor.ts';
import { settings } from './settings.ts';
import { staff } from './staff.ts';
import { upload } from './upload.ts';
import { uploadDesk } from './upload-desk.ts';
import { user } from './user.ts';

export const KINDS: readonly AnyKind[] = [
  app,
  codeCourier,
  codeDesk,
  deliveryLog,
  draft,
  settings,
  staff,
  upload,
  uploadDesk,
  user,
];
