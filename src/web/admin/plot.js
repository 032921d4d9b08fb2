/** The library of charts, a classic script that makes `window.uPlot`: loaded with the first dashboard. */
let loading;

export function loadPlot() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = new URL('../vendor/uplot.js', import.meta.url).pathname;
    script.addEventListener('load', resolve);
    script.addEventListener('error', () => {
      loading = undefined;
      reject(new Error('The charts could not be loaded.'));
    });
    document.head.append(script);
  });
  return loading;
}
