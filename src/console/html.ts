import htm from 'htm';
import { h, type ComponentChildren, type VNode } from 'preact';

/** What a component returns. */
export type View = VNode | null;
/** What a component is given as content. */
export type Content = ComponentChildren;

/** Markup as a tagged template: `<${Component} name=${value}>…<//>`. Values are never parsed as markup. */
export const html = htm.bind(h as never) as unknown as (
  strings: TemplateStringsArray,
  ...values: readonly unknown[]
) => VNode;
