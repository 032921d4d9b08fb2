/** The filter of a page is the query of its address, so that a link shows the same rows. */

/** Shows the page of this address with another query; fields that are '' are left out. */
export function moveTo(filter) {
  const fields = new URLSearchParams(Object.entries(filter).filter(([, value]) => value !== ''));
  history.pushState(null, '', `${location.pathname}${fields.size === 0 ? '' : `?${fields}`}`);
  dispatchEvent(new PopStateEvent('popstate'));
}
