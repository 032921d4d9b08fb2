/** Changes to Swagger UI, so that every part has a name, a place and one control for one deed. */

/**
 * @param system the system of Swagger UI, whose own React makes the elements
 * @returns a plugin with the layout `ExplorerLayout`
 */
export function explorerPlugin({ React: { createElement: make }, fn: { resolveSubtree } }) {
  return {
    fn: { resolveSubtree: (whole, path, options) => resolveSubtree(partOf(whole, path), path, options) },
    components: { ExplorerLayout: layoutWith(make) },
    wrapComponents: {
      // The path of an operation is a link within the button that opens it. The button sets the address already.
      OperationSummaryPath: (Original) => (props) =>
        make(Original, {
          ...props,
          operationProps: props.operationProps.set('isDeepLinkingEnabled', false),
        }),
    },
  };
}

/**
 * The part of a description that an operation is made of: Swagger UI reads what it is given anew for each operation that is
 * opened, which takes seconds for the whole.
 * @param whole with references to its own components only
 * @param path names from the root on, as `['paths', '/mcp', 'post']`
 * @returns a description with that path and the components that it refers to, itself or by others
 */
function partOf(whole, [root, name]) {
  const { paths: _paths, components, ...rest } = whole;
  const part = { ...rest, paths: {}, components: { securitySchemes: components.securitySchemes } };
  const follow = (value) => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, each] of Object.entries(value))
      if (key === '$ref') take(each);
      else follow(each);
  };
  const take = (reference) => {
    const [, group, title] = /^#\/components\/([^/]+)\/([^/]+)/.exec(reference) ?? [];
    const named = components[group]?.[title];
    if (named === undefined || part.components[group]?.[title] !== undefined) return;
    part.components[group] = { ...part.components[group], [title]: named };
    follow(named);
  };
  part[root][name] = whole[root][name];
  follow(part[root][name]);
  return part;
}

/**
 * The layout of Swagger UI without its `main`, which the page has around it; without a choice among servers, as there is
 * one; with a heading between that of the description and those of the groups.
 */
function layoutWith(make) {
  return function ExplorerLayout({ getComponent, specSelectors }) {
    const part = (name) => make(getComponent(name, true));
    const frame = (...children) => make('div', { className: 'swagger-ui' }, ...children);
    const status = specSelectors.loadingStatus();
    if (status === 'loading' || (status !== 'failed' && !specSelectors.specStr()))
      return frame(make('p', { className: 'busy page', role: 'status' }, 'Loading the routes …'));
    if (status === 'failed')
      return frame(
        make('h1', { className: 'wrapper' }, 'The description could not be loaded.'),
        make('div', { className: 'wrapper' }, part('errors')),
      );
    return frame(
      make(getComponent('SvgAssets')),
      part('errors'),
      make('div', { className: 'wrapper information-container' }, part('InfoContainer')),
      make(
        'div',
        { className: 'scheme-container' },
        make('div', { className: 'schemes wrapper' }, part('AuthorizeBtnContainer')),
      ),
      part('FilterContainer'),
      make('div', { className: 'wrapper' }, make('h2', null, 'Routes'), part('operations')),
    );
  };
}

/** Controls that Swagger UI leaves without a name, and the name; the first that fits counts. */
const NAMES = [
  ['.parameters select', (control) => control.closest('tr[data-param-name]')?.dataset.paramName],
  ['.examples-select-element', () => 'Example'],
  ['.opblock-section-request-body :is(textarea, input[type="file"])', () => 'Request body'],
  ['.live-responses-table', (table) => `Answer of ${operationOf(table)}`],
  ['.responses-table', (table) => `Responses of ${operationOf(table)}`],
];

/** Method and path, as the head of the operation shows them. */
function operationOf(element) {
  const head = element.closest('.opblock');
  const method = head?.querySelector('.opblock-summary-method')?.textContent;
  return `${method} ${head?.querySelector('[data-path]')?.dataset.path}`;
}

/** Gives each control below `root` its name when it appears; Swagger UI leaves attributes alone that it did not set. */
export function nameControls(root) {
  const name = () => {
    for (const [selector, nameOf] of NAMES)
      for (const element of root.querySelectorAll(`${selector}:not([aria-label])`)) {
        const text = nameOf(element);
        if (text) element.setAttribute('aria-label', text);
      }
  };
  new MutationObserver(name).observe(root, { childList: true, subtree: true });
}
