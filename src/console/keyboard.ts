import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

/** A key, or two that follow each other: `g e`. */
interface Shortcut {
  readonly keys: string;
  readonly label: string;
  readonly run: () => void;
}

/** The shortcuts of the frame and of the page that is shown. */
export const shortcuts = signal<readonly Shortcut[]>([]);

/** The time within which the second key follows. */
const sequenceMs = 1_200;

/** Adds a shortcut while the component is rendered. */
export function useShortcut(keys: string, label: string, run: () => void): void {
  useEffect(() => {
    const shortcut = { keys, label, run };
    shortcuts.value = [...shortcuts.peek(), shortcut];
    return () => {
      shortcuts.value = shortcuts.peek().filter((one) => one !== shortcut);
    };
  }, [keys, label, run]);
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName));

/** Runs shortcuts, except while the user types or a dialog is open. Call it once. */
export function listenToKeys(): void {
  let first: { readonly key: string; readonly at: number } | undefined;
  document.addEventListener('keydown', (event) => {
    const hasModifier = event.metaKey || event.ctrlKey || event.altKey;
    if (
      hasModifier ||
      event.defaultPrevented ||
      isTyping(event.target) ||
      document.querySelector('dialog[open]')
    )
      return;
    const isFollowing = first !== undefined && event.timeStamp - first.at < sequenceMs;
    const wanted = [...(isFollowing && first ? [`${first.key} ${event.key}`] : []), event.key];
    const found = shortcuts.peek().findLast(({ keys }) => wanted.includes(keys));
    first = found ? undefined : { key: event.key, at: event.timeStamp };
    if (!found) return;
    event.preventDefault();
    found.run();
  });
}
