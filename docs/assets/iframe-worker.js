// Search runs in a worker. Browsers start none for a page that was opened as a file, so here a frame is the worker: its
// script sees the same self, postMessage, onmessage and importScripts.
(function () {
  if (location.protocol !== "file:") return;

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.url = new URL(url, document.baseURI).href;
      this.onmessage = null;
      this.onerror = null;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.frame = frame;
      const inner = frame.contentWindow;
      inner.document.open();
      inner.document.write("<!doctype html><title>worker</title><body></body>");
      inner.document.close();
      // What the worker says goes to the page, and the other way round.
      const page = this;
      inner.postMessage = function (data) {
        page.deliver(data);
      };
      // Scripts load one after another, in order; the caller waits for none of them, so a promise stands for all.
      inner.importScripts = function (...urls) {
        return urls.reduce((before, each) => before.then(() => page.load(each)), Promise.resolve());
      };
      this.ready = this.load(this.url);
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script");
        script.src = new URL(url, this.url).href;
        script.onload = resolve;
        script.onerror = () => reject(new Error(`${url} can't be loaded`));
        this.frame.contentDocument.body.append(script);
      });
    }

    deliver(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      this.ready.then(() => {
        const inner = this.frame.contentWindow;
        inner.dispatchEvent(new inner.MessageEvent("message", { data }));
      });
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
})();
