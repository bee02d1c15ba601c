/** Pictures and files that are pasted or dropped. */

import type { Picture } from "../../src/transcript/messages";

/** The server takes pictures of 3.75 MB; a base64 text is a third longer. */
const LARGEST = 3_750_000;
const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/** Calls `take` with the pictures and the addresses of files that come to the element. */
export function takePictures(
  element: HTMLElement,
  take: (pictures: Picture[], uris: string[]) => void,
  say: (message: string) => void,
): void {
  const took = (files: File[], uris: string[]) => {
    read(files, say).then((pictures) => take(pictures, uris), (error: unknown) => say(String(error)));
  };
  element.addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])].filter((file) => file.type.startsWith("image/"));
    if (files.length === 0) return;
    event.preventDefault();
    took(files, []);
  });
  element.addEventListener("dragover", (event) => {
    event.preventDefault();
    element.classList.add("drop");
  });
  element.addEventListener("dragleave", () => element.classList.remove("drop"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    element.classList.remove("drop");
    const uris = (event.dataTransfer?.getData("text/uri-list") ?? "").split(/\r?\n/).filter((one) => one.startsWith("file:"));
    const files = [...(event.dataTransfer?.files ?? [])].filter((file) => file.type.startsWith("image/"));
    took(files, files.length > 0 ? [] : uris);
  });
}

async function read(files: File[], say: (message: string) => void): Promise<Picture[]> {
  const pictures: Picture[] = [];
  for (const file of files) {
    const blob = TYPES.includes(file.type) && file.size <= LARGEST ? file : await smaller(file);
    if (blob) pictures.push({ name: file.name || "picture", mimeType: blob.type, data: await base64(blob) });
    else say(`${file.name} is no picture that models can read: PNG, JPEG, GIF or WebP, up to 3.75 MB`);
  }
  return pictures;
}

/** The picture in a format and size that the server takes; undefined if it cannot be read. */
async function smaller(file: File): Promise<Blob | undefined> {
  try {
    const bitmap = await createImageBitmap(file);
    for (let scale = Math.min(1, 2000 / Math.max(bitmap.width, bitmap.height)); scale > 0.05; scale /= 2) {
      const canvas = new OffscreenCanvas(Math.ceil(bitmap.width * scale), Math.ceil(bitmap.height * scale));
      canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      const blob = await canvas.convertToBlob({ type: "image/webp", quality: 0.85 });
      if (blob.size <= LARGEST) return blob;
    }
  } catch {
    return undefined; // no picture, whatever it says it is
  }
  return undefined;
}

async function base64(blob: Blob): Promise<string> {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 32_768) text += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  return btoa(text);
}

/** The name under which the server tells of a picture that was sent. */
export async function hashOf(picture: Picture): Promise<string> {
  const bytes = Uint8Array.from(atob(picture.data), (char) => char.charCodeAt(0));
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
