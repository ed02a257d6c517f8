import { Dialog } from './components/dialog.ts';
import { html, type View } from './html.ts';
import { shortcuts } from './keyboard.ts';

/** Every shortcut of the page that is shown. */
export function ShortcutList({ onClose }: { readonly onClose: () => void }): View {
  return html`<${Dialog} title="Keyboard shortcuts" onClose=${onClose}>
    <dl class="shortcuts">
      ${shortcuts.value.map(
        ({ keys, label }) =>
          html`<div key=${keys}>
            <dt>${keys.split(' ').map((key) => html`<kbd key=${key}>${key}</kbd>`)}</dt>
            <dd>${label}</dd>
          </div>`,
      )}
    </dl>
  <//>`;
}
