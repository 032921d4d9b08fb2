/** The account itself: nickname, contacts that codes log in from, export and removal. */
import { get, post, refusalOf, send } from '../shared/api.js';
import { Act, Ask, Loaded, notify, ShortId, Time, useLoad } from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';

const NICKNAME_MAX = 64;
const EXPORT = '/auth/v1/account/export';

/** `onLeave` reads the session again: there is no account any more, or it has another name. */
export function AccountPart({ info, onLeave }) {
  const account = useLoad(() => get('/auth/v1/account'), []);
  const remove = async () => {
    await post('/auth/v1/account/remove', {});
    await onLeave();
    notify('Your account is removed.');
  };
  return html`<h1>Account</h1>
    <${Loaded} of=${account}>${(profile) => html`<div>
      <${Profile} profile=${profile} onSaved=${() => Promise.all([account.reload(), onLeave()])} />
      <${Contacts} contacts=${profile.contacts} sendsCodes=${info?.authMethods?.includes('email')} reload=${account.reload} /></div>`}<//>
    <section class="card stack">
      <header><h2>Your data</h2></header>
      <p>Both need a login of the last 15 minutes: log out and in again if it is older.</p>
      <div class="row">
        <${Act} done="The file is saved." run=${saveExport}>Download everything<//>
        <${Ask} label="Remove the account" title="Remove the account?" confirm="Remove it for good"
          question="Keys, contacts, sessions and applications end immediately, and uploads under way are cancelled. Modules that know the account are notified. This cannot be undone." run=${remove} />
      </div>
    </section>`;
}

function Profile({ profile, onSaved }) {
  const [nickname, setNickname] = useState(profile.nickname ?? '');
  const save = async () => {
    const text = nickname.trim();
    await post('/auth/v1/account', { nickname: text === '' ? null : text });
    await onSaved();
  };
  return html`<section class="card stack">
    <header><h2>Profile</h2></header>
    <dl class="facts small"><dt>Account id</dt><dd><${ShortId} id=${profile.userId} /></dd><dt>Opened</dt><dd><${Time} of=${profile.createdUtc} /></dd></dl>
    <div>
      <label for="nickname">Nickname <span class="soft">(optional)</span></label>
      <input id="nickname" maxlength=${NICKNAME_MAX} autocomplete="nickname" value=${nickname} onInput=${(event) => setNickname(event.currentTarget.value)} />
    </div>
    <div class="row"><${Act} done="The nickname is saved." disabled=${nickname.trim() === (profile.nickname ?? '')} run=${save}>Save the nickname<//></div>
  </section>`;
}

function Contacts({ contacts, sendsCodes, reload }) {
  const remove = async ({ channel, address }) => {
    await post('/auth/v1/account/contacts/remove', { [channel]: address });
    await reload();
  };
  return html`<section class="card stack">
    <header><h2>Contacts</h2></header>
    <p class="soft">A code that is sent to one of them logs in to this account. With a contact, a lost passkey is no lost account.</p>
    ${contacts.length === 0 && html`<p>There is no contact yet.</p>`}
    ${contacts.map(
      (contact) => html`<div class="row" key=${contact.address}><span class="mono">${contact.address}</span>
        <${Ask} label=${html`Remove<span class="hidden"> ${contact.address}</span>`} title=${`Remove ${contact.address}?`} confirm="Remove it" done="The contact is removed." question="It no longer logs in to this account. Its holder may open another account with it." run=${() => remove(contact)} /></div>`,
    )}
    ${sendsCodes && html`<${AddContact} reload=${reload} />`}
  </section>`;
}

/** The code proves that the contact is the person's own. */
function AddContact({ reload }) {
  const [address, setAddress] = useState('');
  const [sent, setSent] = useState(undefined);
  const [code, setCode] = useState('');
  const ask = async () => {
    const text = address.trim();
    const isPhone = text.startsWith('+');
    const body = isPhone ? { phone: text } : { email: text };
    setSent(await post(isPhone ? '/auth/v1/login_phone' : '/auth/v1/login_email', body));
    setCode('');
  };
  const add = async () => {
    await post('/auth/v1/account/contacts/add', { challengeId: sent.challengeId, code: code.trim() });
    setAddress('');
    setSent(undefined);
    await reload();
  };
  return html`<div>
      <label for="contact">E-mail address or phone number</label>
      <input id="contact" autocomplete="email" aria-describedby="contact-hint" value=${address} onInput=${(event) => setAddress(event.currentTarget.value)} />
      <p class="hint" id="contact-hint">Phone numbers begin with + and the country code.</p>
    </div>
    <div class="row"><${Act} disabled=${address.trim() === ''} run=${ask}>${sent === undefined ? 'Send a code' : 'Send another code'}<//></div>
    ${
      sent !== undefined &&
      html`<div>
        <label for="contact-code">${sent.codeLength}-digit code</label>
        <input id="contact-code" inputmode="numeric" autocomplete="one-time-code" maxlength=${sent.codeLength} value=${code} onInput=${(event) => setCode(event.currentTarget.value)} />
      </div>
      <div class="row"><${Act} kind="primary" done="The contact is added." disabled=${code.trim().length !== sent.codeLength} run=${add}>Add the contact<//></div>`
    }`;
}

/** Fetched and not linked, so that a refusal is a notice and no file. */
async function saveExport() {
  const answer = await send('GET', EXPORT, {});
  if (!answer.ok) throw refusalOf(answer, await answer.json().catch(() => undefined));
  const file = URL.createObjectURL(await answer.blob());
  const link = Object.assign(document.createElement('a'), { href: file, download: 'account.json' });
  link.click();
  URL.revokeObjectURL(file);
}
