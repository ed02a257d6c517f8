/** What a model answered. */
export type Reply = { readonly kind: 'query'; readonly sql: string } | { readonly kind: 'unclear' };

/** The word that a model answers with when a prompt cannot be understood. */
export const unclearWord = 'UNCLEAR';

/** The query of an answer, without the fence that models like to put round it and without a `;` behind it. */
export function readReply(text: string): Reply {
  const [, fenced] = /```(?:\w+\n|\n)?([\s\S]*?)```/.exec(text) ?? [];
  const answer = (fenced ?? text).trim();
  if (answer === '' || new RegExp(`^${unclearWord}\\b`).test(answer)) return { kind: 'unclear' };
  return { kind: 'query', sql: answer.replace(/[;\s]+$/, '') };
}
