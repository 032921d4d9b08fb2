/** Rights of each role, and the dialog that gives one. */
import { post } from '../../shared/api.js';
import { Confirm } from '../../shared/ui.js';
import { html, useState } from '../../vendor/preact.js';
import { called } from '../who.js';

const ROLES = ['viewer', 'support', 'admin'];

export const EFFECTS = {
  '': 'It loses access to the admin panel.',
  viewer: 'It can read every page and change nothing.',
  support: 'It can read every page, block accounts without a role, and resend webhooks.',
  admin: 'It can change everything, including roles.',
};

/** Does a role include what another one may do? */
export const includes = (role, needed) => ROLES.indexOf(role) >= ROLES.indexOf(needed);

/** A role changes only after a dialog that names account and role. An admin cannot change the own role. */
export function RoleOf({ account, canGive, isOwn, reload }) {
  const [open, setOpen] = useState(false);
  const value = account.role ?? '';
  const [chosen, setChosen] = useState(value);
  const begin = () => {
    setChosen(value);
    setOpen(true);
  };
  const give = async () => {
    await post('/ProxyAdmin/api/staff', { userId: account.id, role: chosen === '' ? null : chosen });
    await reload();
  };
  const confirm = chosen === '' ? `Remove the role ${value}` : `Assign the role ${chosen}`;
  const name = called(account);
  return html`<div class="role"><span>${value === '' ? 'none' : value}</span>
    ${isOwn ? html`<span class="small soft">yours</span>` : canGive && html`<button type="button" class="plain" onClick=${begin}>Change<span class="hidden"> the role of ${name}</span></button>`}</div>
    <${Confirm} title=${`Role of ${name}`} open=${open} onClose=${() => setOpen(false)} confirm=${chosen === value ? 'Change' : confirm} disabled=${chosen === value} kind=${chosen === 'admin' || chosen === '' ? 'danger' : 'primary'} done="The role is changed." run=${give}>
      <div class="stack">
        <p><strong>${name}</strong> has ${value === '' ? 'no role' : html`the role <strong>${value}</strong>`} now.</p>
        <div><label for="role">New role</label>
        <select id="role" value=${chosen} onChange=${(event) => setChosen(event.currentTarget.value)}>
          <option value="">none</option>${ROLES.map((role) => html`<option value=${role}>${role}</option>`)}
        </select></div>
        <p class="effect" aria-live="polite">${chosen === value ? 'Choose another role to change it.' : html`${name} ${chosen === '' ? html`loses the role <strong>${value}</strong>` : html`gets the role <strong>${chosen}</strong>`}. ${EFFECTS[chosen]}`}</p>
      </div>
    <//>`;
}
