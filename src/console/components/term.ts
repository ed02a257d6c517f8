import { useId, useRef } from 'preact/hooks';
import { html, type View } from '../html.ts';

/** What words of the pages mean. */
const meanings = {
  Generation:
    'How often the interval was exported. Each time writes files of the next generation, and a manifest that replaces the one before.',
  Settled:
    'Whether no transaction of the source could still add rows to the interval when they were counted. If one could, the interval is compared again once it has ended.',
  Landed: 'The time from the end of the interval until its rows were in the bucket for the first time.',
  Held: 'The source no longer has all rows that the bucket has. Nothing was published, and the files stay until a person decides.',
  Unsettled:
    'Exported while a transaction of the source was still open. Rows that it adds are exported once it has ended.',
} as const;

type TermName = keyof typeof meanings;

/** Whether a word is explained. */
export const isTerm = (word: string): word is TermName => word in meanings;

const gap = 6;

/** A word that explains itself on hover, with the keyboard (Tab, Escape) and by touch. */
export function Term({ name }: { readonly name: TermName }): View {
  const id = useId();
  const note = useRef<HTMLElement>(null);
  const show = (event: Event) => {
    const shown = note.current;
    if (!shown || shown.matches(':popover-open')) return;
    const { left, bottom, top } = (event.currentTarget as HTMLElement).getBoundingClientRect();
    shown.showPopover();
    const { width, height } = shown.getBoundingClientRect();
    const page = document.documentElement;
    const isBelow = bottom + gap + height <= page.clientHeight;
    shown.style.left = `${Math.max(gap, Math.min(left, page.clientWidth - width - gap))}px`;
    shown.style.top = `${isBelow ? bottom + gap : Math.max(gap, top - gap - height)}px`;
  };
  const hide = () => note.current?.hidePopover();
  return html`<button
      type="button"
      class="term"
      aria-describedby=${id}
      onMouseEnter=${show}
      onMouseLeave=${hide}
      onFocus=${show}
      onBlur=${hide}
      onClick=${show}
    >
      ${name}
    </button>
    <span id=${id} class="term-note" role="tooltip" popover="auto" ref=${note}>${meanings[name]}</span>`;
}
