/** A parsed reply of the model. */
export type Reply = { readonly kind: 'query'; readonly sql: string } | { readonly kind: 'unclear' };

/** The reply of the model to an unclear prompt. */
export const unclearWord = 'UNCLEAR';

/** Extracts the query from a reply, without a code fence and a trailing `;`. */
export function readReply(text: string): Reply {
  const [, fenced] = /```(?:\w+\n|\n)?([\s\S]*?)```/.exec(text) ?? [];
  const reply = (fenced ?? text).trim();
  if (reply === '' || new RegExp(`^${unclearWord}\\b`).test(reply)) return { kind: 'unclear' };
  return { kind: 'query', sql: reply.replace(/[;\s]+$/, '') };
}
